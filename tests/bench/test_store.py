"""The cost bench in short: it measures what it says."""

from __future__ import annotations

from pathlib import Path

from bench.store import bench, sentences, size_of


def test_the_bench_measures_each_size() -> None:
    result = bench([150, 50], writes=120, model=False)
    assert [row["facts"] for row in result["sizes"]] == [50, 150]
    for row in result["sizes"]:
        assert min(row["write_p50_ms"], row["bare_p50_ms"], row["open_ms"], row["import_per_second"]) > 0
    used = result["disk_multiple_of_raw"]
    # Rows, words and vectors stand in SQLite, texts and vectors in LanceDB once more.
    assert used["peak"] >= used["before_expiry"] >= used["after_expiry"] > used["of_that_sqlite"] > 1


def test_sentences_are_all_different_and_the_same_each_time() -> None:
    assert len(set(sentences(300, 1))) == 300
    assert list(sentences(20, 1)) == list(sentences(20, 1))


def test_the_size_of_a_folder_is_that_of_all_files_below(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(10))
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "d").write_bytes(bytes(32))
    assert size_of(tmp_path) == 42
