"""The default model: what its vectors are, what it refuses, how it stops."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perdure.embed.base import Embedder
from perdure.embed.catalogue import RECALL
from perdure.embed.load import find_weights, load_default
from perdure.embed.onnx import OnnxEmbedder
from perdure.errors import ModelError

KERNEL_TOLERANCE = 2e-2
"""int8 kernels differ between processors, those of dynamic quantisation more than others."""

GOLDEN = {
    "Anna prefers green tea.": [-0.0255, 0.01965, 0.05697, 0.02096, 0.03455],
    "Where does the user live?": [0.10418, -0.02499, 0.00589, -0.05132, -0.01953],
    "": [-0.12466, 0.07749, 0.01413, -0.02983, 0.01648],
    "2026-11-21 deploy to eu-west-1": [0.01297, 0.00512, 0.06976, -0.07614, -0.03978],
}

MIXED = [
    "tea",
    "I like green tea very much in the morning. " * 9,
    "",
    "a b c d e",
    "Anna lives in Graz",
    "q" * 300,
    "word " * 400,
    "zz \ud800 é 你好",
]


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder(RECALL, find_weights(RECALL))


def test_vectors_are_those_of_the_tested_build(embedder: OnnxEmbedder) -> None:
    found = embedder.embed(list(GOLDEN))[:, :5]
    np.testing.assert_allclose(found, list(GOLDEN.values()), atol=KERNEL_TOLERANCE)


def test_rows_are_float32_of_length_one(embedder: OnnxEmbedder) -> None:
    rows = embedder.embed(MIXED)
    assert rows.dtype == np.float32
    assert rows.shape == (len(MIXED), embedder.identity.dims)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


def test_no_texts_give_no_rows(embedder: OnnxEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_its_batch(embedder: OnnxEmbedder) -> None:
    together = embedder.embed(MIXED)
    alone = np.vstack([embedder.embed([text]) for text in MIXED])
    assert (together * alone).sum(axis=1).min() > 0.99999


def test_rows_come_back_in_the_order_of_the_texts(embedder: OnnxEmbedder) -> None:
    forwards, backwards = embedder.embed(MIXED), embedder.embed(MIXED[::-1])
    np.testing.assert_allclose(forwards, backwards[::-1], atol=1e-5)


def test_related_texts_are_nearer_than_unrelated_ones(embedder: OnnxEmbedder) -> None:
    query = embedder.embed(["Where does Anna live?"], query=True)[0]
    related, unrelated = embedder.embed(["Anna moved to a flat in Graz", "The build broke on Friday"])
    assert query @ related > query @ unrelated + 0.2


def test_only_the_first_256_tokens_count(embedder: OnnxEmbedder) -> None:
    long = "word " * 254  # and two special tokens
    whole, longer, shorter = embedder.embed([long, long + "tea " * 50_000, "word " * 253])
    assert whole @ longer > 0.99999
    assert whole @ shorter < 0.99999


def test_prefixes_stand_before_queries_and_documents() -> None:
    model = replace(RECALL, query_prefix="query: ", document_prefix="passage: ")
    weights = find_weights(model)
    plain, prefixed = OnnxEmbedder(RECALL, weights), OnnxEmbedder(model, weights)
    np.testing.assert_allclose(prefixed.embed(["tea"], query=True), plain.embed(["query: tea"]), atol=KERNEL_TOLERANCE)
    np.testing.assert_allclose(prefixed.embed(["tea"]), plain.embed(["passage: tea"]), atol=KERNEL_TOLERANCE)
    assert prefixed.identity.id != plain.identity.id


def test_cls_pooling_is_another_vector_space(embedder: OnnxEmbedder) -> None:
    first_token = OnnxEmbedder(replace(RECALL, pooling="cls"), find_weights(RECALL))
    text = ["Anna prefers green tea."]
    assert float(first_token.embed(text)[0] @ embedder.embed(text)[0]) < 0.99
    assert first_token.identity.id != embedder.identity.id


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("tea", 1), ("green tea", 2), ("tea " * 1000, 1000), ("\ud800", 1)],
)
def test_count_tokens_counts_the_whole_text(embedder: OnnxEmbedder, text: str, tokens: int) -> None:
    assert embedder.count_tokens(text) == tokens


def test_threads_share_one_embedder(embedder: OnnxEmbedder) -> None:
    expected = embedder.embed(MIXED)
    found: dict[int, float] = {}

    def work(number: int) -> None:
        rows = embedder.embed(MIXED)
        assert embedder.count_tokens("tea " * 1000) == 1000
        found[number] = float(np.abs(rows - expected).max())

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    assert max(found.values()) < 1e-5


def test_interrupt_ends_a_running_call_and_no_later_one(embedder: OnnxEmbedder) -> None:
    errors: list[ModelError] = []

    def work() -> None:
        try:
            embedder.embed(["word " * 254] * 1000)
        except ModelError as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        embedder.interrupt()
        worker.join(0.01)
    assert len(errors) == 1
    assert "interrupted" in str(errors[0])
    assert embedder.embed(["tea"]).shape == (1, 384)


def test_altered_weights_are_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx"
    content = bytearray(find_weights(RECALL).read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load_default(weights)
    message = str(caught.value)
    assert str(weights) in message
    assert RECALL.sha256 in message
    assert "its sha256 is" in message


def test_an_altered_tokenizer_is_refused(tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    tokenizer.write_text("{}")
    with pytest.raises(ModelError, match=str(tokenizer)):
        OnnxEmbedder(replace(RECALL, tokenizer=str(tokenizer)), find_weights(RECALL))


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx"
    weights.write_bytes(b"not a model")
    model = replace(RECALL, sha256=hashlib.sha256(b"not a model").hexdigest())
    with pytest.raises(ModelError, match="ONNX Runtime cannot load"):
        OnnxEmbedder(model, weights)


def test_a_description_with_wrong_dims_is_named() -> None:
    wrong = OnnxEmbedder(replace(RECALL, dims=383), find_weights(RECALL))
    with pytest.raises(ModelError, match=r"384 dimensions.*383"):
        wrong.embed(["tea"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.onnx cannot be read"):
        load_default(tmp_path / "model.onnx")


def test_load_default_finds_the_model_of_the_package() -> None:
    loaded: Embedder = load_default()
    assert loaded.identity == RECALL.identity
