"""Fetching models: what comes is checked and kept, a cut is gone on with; and where else models may lie."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from perdure.embed.catalogue import RECALL, Hub, OnnxModel, models
from perdure.embed.load import fetched, find_weights, hub_cache, load_model, models_folder
from perdure.errors import EndpointError, ModelError
from perdure.models.download import fetch, forbidden
from tests.kit import for_each
from tests.loopback import Loopback, Reply, Request, loopback, served

WEIGHTS, VOCABULARY = b"weights " * 20_000, b"{}" * 500
HUB = Hub(repo="birds/heron-small", revision="a" * 40)
HERON = OnnxModel(
    key="heron-small",
    name="heron-small",
    hub=HUB,
    file="onnx/model.onnx",
    size=len(WEIGHTS),
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    tokenizer_size=len(VOCABULARY),
    tokenizer_sha256=hashlib.sha256(VOCABULARY).hexdigest(),
    dims=8,
    max_tokens=32,
    licence="MIT",
    about="a test",
)
FILES = {HUB.path("onnx/model.onnx"): WEIGHTS, HUB.path("tokenizer.json"): VOCABULARY}


def answer(request: Request) -> Reply:
    return served(FILES[request.path], request) if request.path in FILES else Reply(b"", 404)


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(answer) as running:
        yield running


def lie(folder: Path, model: OnnxModel = HERON) -> Path:
    """Put the files of the model into a folder as the hub has them."""
    for file, content in ((model.file, WEIGHTS), (model.tokenizer, VOCABULARY)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return folder


def test_a_model_is_fetched_once_and_found_from_then_on(server: Loopback) -> None:
    assert fetched(HERON) is None
    with pytest.raises(ModelError, match="perdure model fetch heron-small"):
        find_weights(HERON)
    told: list[int] = []
    folder = fetch(HERON, server.url, advance=told.append)
    assert sum(told) == len(WEIGHTS) + len(VOCABULARY)
    assert fetched(HERON) == folder
    assert find_weights(HERON) == folder / "onnx" / "model.onnx"
    assert find_weights(HERON).read_bytes() == WEIGHTS
    assert (folder / "tokenizer.json").read_bytes() == VOCABULARY
    assert sorted(path.name for path in folder.rglob("*.part")) == []
    asked = len(server.requests)
    assert fetch(HERON, server.url) == folder
    assert len(server.requests) == asked
    assert [request.headers.get("Authorization") for request in server.requests] == [None] * asked


def test_a_cut_is_gone_on_with_in_the_same_fetch(server: Loopback) -> None:
    told: list[int] = []
    server.answer = lambda request: replace(answer(request), cut=50_000)
    fetch(HERON, server.url, advance=told.append)
    ranges = [request.headers.get("Range") for request in server.requests]
    assert ranges == [None, "bytes=50000-", "bytes=100000-", "bytes=150000-", None]
    assert sum(told) == len(WEIGHTS) + len(VOCABULARY)
    assert find_weights(HERON).read_bytes() == WEIGHTS


def test_a_cut_that_stays_is_gone_on_with_by_the_next_fetch(server: Loopback) -> None:
    def once(request: Request) -> Reply:
        return replace(answer(request), cut=0 if "Range" in request.headers else 70_000)

    server.answer = once
    with pytest.raises(EndpointError, match="the download resumes"):
        fetch(HERON, server.url)
    assert fetched(HERON) is None
    server.answer = answer
    fetch(HERON, server.url)
    assert server.requests[-2].headers["Range"] == "bytes=70000-"
    assert find_weights(HERON).read_bytes() == WEIGHTS


def test_another_file_is_refused_and_deleted(server: Loopback) -> None:
    server.answer = lambda request: served(b"x" * len(FILES[request.path]), request)
    with pytest.raises(ModelError, match="sent a different file") as caught:
        fetch(HERON, server.url)
    assert HERON.sha256 in str(caught.value)
    assert [path for path in models_folder().rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    assert fetched(HERON) is None
    server.answer = answer
    assert fetch(HERON, server.url) == fetched(HERON)


def test_a_fetch_that_was_killed_before_its_mark_is_no_fetch(server: Loopback) -> None:
    folder = fetch(HERON, server.url)
    (folder / "complete.json").unlink()
    assert fetched(HERON) is None
    asked = len(server.requests)
    assert fetch(HERON, server.url) == fetched(HERON)
    assert len(server.requests) == asked, "the files are right, only the mark was missing"


def test_files_under_other_pins_are_not_taken(server: Loopback) -> None:
    fetch(HERON, server.url)
    assert fetched(replace(HERON, sha256="0" * 64)) is None


@pytest.mark.parametrize(("status", "message"), [(404, "answered 404"), (500, "answered 500")])
def test_what_the_hub_does_not_have(status: int, message: str, server: Loopback) -> None:
    server.answer = lambda request: Reply(b"", status)
    with pytest.raises(EndpointError, match=message):
        fetch(HERON, server.url)
    assert len(server.requests) == 1


def test_a_hub_that_hangs_is_given_up(server: Loopback) -> None:
    server.hang = True
    with pytest.raises(EndpointError, match="sent nothing for too long"):
        fetch(HERON, server.url, timeout=0.2)


@pytest.mark.parametrize("value", ["1", "true", "ON", "Yes"])
def test_offline_means_no_connection(value: str, server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    with pytest.raises(ModelError, match=f"HF_HUB_OFFLINE is {value}"):
        fetch(HERON, server.url)
    assert server.connections == 0
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert forbidden() is None


def test_one_process_fetches_at_a_time(server: Loopback) -> None:
    folder = models_folder() / HERON.key / HUB.revision
    folder.parent.mkdir(parents=True)
    with FileLock(folder.with_suffix(".lock")), pytest.raises(ModelError, match="by another process"):
        fetch(HERON, server.url)
    assert server.connections == 0
    server.hang = True

    def fetch_first() -> None:
        with pytest.raises(EndpointError):
            fetch(HERON, server.url, timeout=20.0)

    first = threading.Thread(target=fetch_first)
    first.start()
    assert server.arrived.wait(20)
    with pytest.raises(ModelError, match="by another process"):
        fetch(HERON, server.url)
    server.release.set()
    first.join(20)


def test_what_comes_with_perdure_is_not_fetched(server: Loopback) -> None:
    with pytest.raises(ModelError, match="ships with perdure"):
        fetch(RECALL, server.url)
    assert server.connections == 0


def test_a_folder_that_cannot_be_written(server: Loopback) -> None:
    models_folder().parent.mkdir(parents=True)
    models_folder().write_text("in the way")
    with pytest.raises(ModelError, match="cannot be written"):
        fetch(HERON, server.url)


class TestTheUsersHubCache:
    @pytest.fixture
    def snapshot(self) -> Path:
        return hub_cache() / "models--birds--heron-small" / "snapshots" / HUB.revision

    def test_the_pinned_revision_is_found(self, snapshot: Path) -> None:
        lie(snapshot)
        assert find_weights(HERON) == snapshot / "onnx" / "model.onnx"

    def test_another_revision_is_not(self, snapshot: Path) -> None:
        lie(snapshot.with_name("b" * 40))
        with pytest.raises(ModelError, match="not on this machine"):
            find_weights(HERON)

    @pytest.mark.parametrize("file", ["onnx/model.onnx", "tokenizer.json"])
    def test_nor_is_one_that_is_not_whole(self, file: str, snapshot: Path) -> None:
        (lie(snapshot) / file).write_bytes(b"cut")
        with pytest.raises(ModelError, match="not on this machine"):
            find_weights(HERON)

    def test_where_it_is(self, tmp_path: Path) -> None:
        assert hub_cache({"HF_HUB_CACHE": str(tmp_path), "HF_HOME": "/x"}) == tmp_path
        assert hub_cache({"HF_HOME": str(tmp_path)}) == tmp_path / "hub"
        assert hub_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "huggingface" / "hub"
        assert hub_cache({}) == Path.home() / ".cache" / "huggingface" / "hub"


class TestTheRealModelUnderAnotherName:
    """The default model's files, laid out as the hub has them."""

    @pytest.fixture
    def model(self) -> OnnxModel:
        return replace(RECALL, key="far", hub=HUB, file="onnx/model.onnx", tokenizer_size=466_247)

    @pytest.fixture
    def folder(self, model: OnnxModel, tmp_path: Path) -> Path:
        vocabulary = RECALL.tokenizer_path
        assert vocabulary is not None
        folder = tmp_path / "far"
        (folder / "onnx").mkdir(parents=True)
        (folder / "onnx" / "model.onnx").symlink_to(find_weights(RECALL))
        (folder / "tokenizer.json").symlink_to(vocabulary)
        return folder

    def test_a_path_is_enough(self, model: OnnxModel, folder: Path) -> None:
        texts = ["Anna prefers green tea.", "Where does the user live?"]
        expected = load_model(RECALL).embed(texts)
        for path in (folder, folder / "onnx" / "model.onnx"):
            found = load_model(model, path)
            assert found.identity == RECALL.identity
            np.testing.assert_allclose(found.embed(texts), expected, atol=1e-5)

    def test_what_is_altered_is_refused_wherever_it_lies(self, model: OnnxModel, folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer.json").write_text("{}")
        with pytest.raises(ModelError, match=r"tokenizer\.json has changed"):
            load_model(model, folder)
        with pytest.raises(ModelError, match="cannot be read"):
            load_model(model, folder / "nothing")

    def test_texts_that_must_be_alone_are(self, model: OnnxModel, folder: Path) -> None:
        texts = ["tea", "I like green tea very much in the morning."]
        embedder = load_model(model, folder)
        each = np.vstack([embedder.embed([text]) for text in texts])
        np.testing.assert_allclose(embedder.embed(texts), each, atol=1e-5)

    def test_others_go_in_batches_and_come_back_in_order(self, model: OnnxModel, folder: Path) -> None:
        texts = ["tea", "I like green tea very much in the morning.", "Anna lives in Graz", "the build", "w " * 400, ""]
        together = load_model(replace(model, alone=False), folder).embed(texts)
        cosines = load_model(model, folder).embed(texts) @ together.T
        assert cosines.argmax(1).tolist() == list(range(len(texts)))
        assert cosines.diagonal().min() > 0.95


@for_each("model", models().values())
def test_each_model_of_the_catalogue_is_pinned(model: OnnxModel) -> None:
    assert models()[model.key] is model
    assert all(size > 100_000 for size, _ in model.pins.values())
    if model.hub is not None:
        assert len(model.hub.revision) == 40
        assert int(model.hub.revision, 16)


def test_no_two_models_share_a_vector_space() -> None:
    assert len({model.identity.id for model in models().values()}) == len(models())
