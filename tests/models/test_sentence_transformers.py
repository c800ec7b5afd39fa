"""Models of the package sentence-transformers, tried with a tiny BERT of random weights."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from perdure.embed.catalogue import RECALL
from perdure.errors import ModelError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")

from perdure.models.sentence_transformers import SentenceTransformerEmbedder  # noqa: E402

MIXED = ["tea", "green tea in the morning " * 9, "", "q" * 300, "word " * 400, "zz \ud800 é 你好"]


IDENTITY = """
import sys
from perdure.models.sentence_transformers import SentenceTransformerEmbedder
print(SentenceTransformerEmbedder(sys.argv[1], device="cpu").identity.id)
"""


def save_tiny_bert(folder: Path, seed: int, *, pooler: bool = True) -> Path:
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(RECALL.tokenizer_path),
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    transformers.BertModel(config, add_pooling_layer=pooler).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("models") / "tiny-bert", seed=1)


@pytest.fixture(scope="module")
def embedder(folder: Path) -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(str(folder), device="cpu")


def test_rows_are_float32_of_length_one(embedder: SentenceTransformerEmbedder) -> None:
    rows = embedder.embed(MIXED)
    assert rows.dtype == np.float32
    assert rows.shape == (len(MIXED), 32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert embedder.embed([]).shape == (0, 32)


def test_a_vector_does_not_depend_on_its_batch(embedder: SentenceTransformerEmbedder) -> None:
    together = embedder.embed(MIXED)
    alone = np.vstack([embedder.embed([text]) for text in MIXED])
    assert np.array_equal(together, alone)


def test_the_identity_comes_from_the_model(embedder: SentenceTransformerEmbedder, folder: Path, tmp_path: Path) -> None:
    identity = embedder.identity
    assert (identity.model, identity.dims, identity.max_tokens) == ("tiny-bert", 32, 128)
    assert identity.pooling == "mean"
    assert SentenceTransformerEmbedder(str(folder), device="cpu").identity == identity
    other = SentenceTransformerEmbedder(str(save_tiny_bert(tmp_path / "tiny-bert", seed=2)), device="cpu")
    assert other.identity.digest != identity.digest


def test_weights_that_are_not_in_the_files_do_not_count(tmp_path: Path) -> None:
    # The package fills in random numbers for the pooler of a model that was saved without one.
    folder = save_tiny_bert(tmp_path / "no-pooler", seed=1, pooler=False)
    here = SentenceTransformerEmbedder(str(folder), device="cpu").identity
    command = [sys.executable, "-c", IDENTITY, str(folder)]
    there = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout.strip()
    assert here.id == there


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("tokenizer_config.json", True),
        ("1_Pooling/config.json", True),
        ("README.md", False),
        ("pytorch_model.bin", False),
        ("onnx/model.onnx", False),
        (".cache/huggingface/download.json", False),
    ],
)
def test_files_count_if_the_models_numbers_may_come_from_them(
    folder: Path, tmp_path: Path, embedder: SentenceTransformerEmbedder, file: str, counts: bool
) -> None:
    copy = tmp_path / "tiny-bert"
    shutil.copytree(folder, copy)
    (copy / file).parent.mkdir(parents=True, exist_ok=True)
    with (copy / file).open("a") as opened:
        opened.write("\n" if (folder / file).exists() else "{}")
    changed = SentenceTransformerEmbedder(str(copy), device="cpu").identity
    assert (changed.digest != embedder.identity.digest) == counts


@pytest.mark.parametrize("name", ["somebody/tiny-bert", "tiny-bert"])
def test_a_name_is_what_lies_in_the_cache_of_the_hub(
    folder: Path, tmp_path: Path, embedder: SentenceTransformerEmbedder, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    repository = (
        tmp_path / "hub" / f"models--{(name if '/' in name else f'sentence-transformers/{name}').replace('/', '--')}"
    )
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    shutil.copytree(folder, repository / "snapshots" / "abc")
    identity = SentenceTransformerEmbedder(name, device="cpu").identity
    assert (identity.model, identity.digest) == (name, embedder.identity.digest)


def test_a_model_that_is_not_here_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(ModelError, match=r"somebody/away.*not on this machine.*fetch it once"):
        SentenceTransformerEmbedder("somebody/away")
    assert list(tmp_path.iterdir()) == []


def test_prompts_of_the_model_are_used_and_part_of_the_identity(
    embedder: SentenceTransformerEmbedder, folder: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", prompts={"query": "query: ", "passage": "text: "})
    model.save(str(tmp_path))
    prompted = SentenceTransformerEmbedder(str(tmp_path), device="cpu")
    assert (prompted.identity.query_prefix, prompted.identity.document_prefix) == ("query: ", "text: ")
    np.testing.assert_allclose(prompted.embed(["tea"], query=True), embedder.embed(["query: tea"]), atol=1e-5)
    np.testing.assert_allclose(prompted.embed(["tea"]), embedder.embed(["text: tea"]), atol=1e-5)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("green tea", 2), ("tea " * 1000, 1000), ("\ud800", 1)])
def test_count_tokens_counts_the_whole_text(embedder: SentenceTransformerEmbedder, text: str, tokens: int) -> None:
    assert embedder.count_tokens(text) == tokens


def test_interrupt_ends_a_running_call_and_no_later_one(embedder: SentenceTransformerEmbedder) -> None:
    errors: list[ModelError] = []

    def work() -> None:
        try:
            embedder.embed(["word " * 100] * 20_000)
        except ModelError as error:
            errors.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        embedder.interrupt()
        worker.join(0.01)
    assert len(errors) == 1
    assert "interrupted" in str(errors[0])
    assert embedder.embed(["tea"]).shape == (1, 32)


def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no-such-model"):
        SentenceTransformerEmbedder(str(tmp_path / "no-such-model"))
