"""The embedder without a model, the ones that misbehave, and what is common to all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.embed.base import model_input, unit_rows
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import InputError, ModelError
from tests.faulty import FailingEmbedder, HangingEmbedder, NanEmbedder, WrongDimsEmbedder

ROOT = Path(__file__).parents[2]
TEXTS = st.lists(st.text(st.characters()), max_size=5)


@settings(max_examples=100)
@given(TEXTS, st.integers(1, 80))
def test_each_row_has_length_one_and_ignores_the_others(texts: list[str], dims: int) -> None:
    embedder = HashEmbedder(dims)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), dims)
    assert rows.dtype == np.float32
    for text, row in zip(texts, rows, strict=True):
        assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-5)
        assert np.array_equal(row, embedder.embed([text], query=True)[0])


def test_vectors_are_the_same_in_every_process() -> None:
    code = (
        "from perdure.embed.deterministic import HashEmbedder\nprint(HashEmbedder().embed(['Anna likes tea']).tolist())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {str(HashEmbedder().embed(["Anna likes tea"]).tolist())}


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("what is my favourite colour", "My favourite colour is teal", "The build uses Bazel and Rust"),
        ("what does the build use?", "The BUILD uses Bazel and Rust", "My dog is called Rufus"),
        ("café", "cafe", "tea"),
    ],
)
def test_texts_that_share_words_are_near(query: str, near: str, far: str) -> None:
    asked, first, second = HashEmbedder().embed([query, near, far])
    assert asked @ first > asked @ second + 0.2


def test_count_tokens_counts_words() -> None:
    assert HashEmbedder().count_tokens("Anna likes tea, and cake.") == 5


def test_other_dims_are_another_identity() -> None:
    assert HashEmbedder(8).identity.id != HashEmbedder(9).identity.id
    with pytest.raises(InputError, match="dims is 0"):
        HashEmbedder(0)


def test_the_failing_one_fails() -> None:
    with pytest.raises(ModelError, match="2 texts"):
        FailingEmbedder().embed(["a", "b"])


def test_the_others_return_what_no_store_may_keep() -> None:
    assert np.isnan(NanEmbedder(8).embed(["a"])).all()
    assert WrongDimsEmbedder(8).embed(["a"]).shape == (1, 9)
    assert WrongDimsEmbedder(8).identity.dims == 8


@pytest.mark.parametrize("way", ["interrupt", "release"])
def test_the_hanging_one_hangs_until_it_is_let_go(way: str) -> None:
    release = threading.Event()
    embedder = HangingEmbedder(release)
    messages: list[str] = []

    def work() -> None:
        try:
            embedder.embed(["a"])
        except ModelError as error:
            messages.append(str(error))

    worker = threading.Thread(target=work)
    worker.start()
    assert embedder.started.wait(30)
    assert worker.is_alive()
    if way == "interrupt":
        embedder.interrupt()
    else:
        release.set()
    worker.join(30)
    assert messages == [f"the hanging embedder was {way.removesuffix('e')}ed"]


def test_unit_rows_turns_zeros_into_a_unit_vector() -> None:
    rows = unit_rows([[3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(rows, [[0.6, 0.8], [1.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_unit_rows_refuses_what_is_not_finite(value: float) -> None:
    with pytest.raises(ModelError, match="NaN or infinity"):
        unit_rows([[1.0, value]])


@settings(max_examples=100)
@given(st.text(st.characters()), st.integers(3, 20))
def test_model_input_can_be_encoded_and_has_a_limit(text: str, max_tokens: int) -> None:
    prepared = model_input(text * 50, max_tokens)
    prepared.encode("utf-8")
    assert len(prepared) <= max_tokens * 64
