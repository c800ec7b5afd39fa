"""`perdure model list`, `fetch` and `use`: from the catalogue to the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from perdure.api.memory import Memory
from perdure.embed.catalogue import RECALL, Hub, OnnxModel, models
from perdure.embed.load import find_weights
from perdure.errors import EndpointError, ModelError, SettingsError
from tests.cli.calling import call, call_json
from tests.loopback import Loopback, Reply, Request, loopback, served

HUB = Hub(repo="birds/far", revision="b" * 40)
FAR = replace(RECALL, key="far", name="far", hub=HUB, file="onnx/model.onnx", tokenizer_size=466_247)
"""The default model's own files, as if they were on a hub: a fetch ends with a model that runs."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A hub that has one model more than the catalogue."""
    vocabulary = RECALL.tokenizer_path
    assert vocabulary is not None
    files = {
        HUB.path(FAR.file): find_weights(RECALL).read_bytes(),
        HUB.path(FAR.tokenizer): vocabulary.read_bytes(),
    }

    def answer(request: Request) -> Reply:
        return served(files[request.path], request) if request.path in files else Reply(b"", 404)

    known: Mapping[str, OnnxModel] = MappingProxyType({**models(), "far": FAR})
    monkeypatch.setattr("perdure.embed.load.models", lambda: known)
    monkeypatch.setattr("perdure.cli.model.models", lambda: known)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with loopback(answer) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def test_from_the_hub_into_the_store(hub: Loopback, elsewhere: Path) -> None:
    with pytest.raises(ModelError, match="perdure model fetch far"):
        call("model", "use", "far", "--home", elsewhere)
    planned = call_json("model", "fetch", "far", "--dry-run")
    assert (planned["path"], planned["forbidden"], planned["hub"]) == (None, None, hub.url)
    assert planned["files"][FAR.file] == {"bytes": FAR.size, "sha256": FAR.sha256}
    assert hub.connections == 0

    brought = call_json("model", "fetch", "far")
    assert Path(brought["path"]).read_bytes() == find_weights(RECALL).read_bytes()
    assert len(hub.requests) == 2
    assert call_json("model", "use", "far", "--home", elsewhere)["model"] == "far (384 dimensions)"
    listed = call_json("model", "list", "--home", elsewhere)
    assert listed["store"] == "far (384 dimensions)"
    assert [each["key"] for each in listed["models"] if each["used"]] == ["far"]
    assert {each["key"] for each in listed["models"] if each["path"]} == {"far", "perdure-recall-1"}
    # The recipe is kept with the store: a process with other settings uses the model that was chosen.
    with Memory.open(elsewhere) as memory:
        assert memory.ready()
        memory.store("Anna prefers green tea")
        assert memory.recall("What does Anna like to drink?") is not None
        assert "far" in memory.status().model
    assert len(hub.requests) == 2


def test_what_is_here_is_not_fetched_again(hub: Loopback) -> None:
    assert "Installed: perdure-recall-1" in call("model", "fetch", "perdure-recall-1").stdout
    assert hub.connections == 0


def test_what_is_forbidden_is_said_before_anything_is_asked(hub: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "Not allowed: HF_HUB_OFFLINE is 1" in call("model", "fetch", "far", "--dry-run").stdout
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is 1"):
        call("model", "fetch", "far")
    assert hub.connections == 0


def test_a_hub_without_the_model(hub: Loopback) -> None:
    with pytest.raises(EndpointError, match="answered 404"):
        call("model", "fetch", "bge-small-en-v1.5")


def test_a_model_that_nobody_knows(hub: Loopback, elsewhere: Path) -> None:
    for command in (["fetch", "heron"], ["use", "heron", "--home", elsewhere]):
        with pytest.raises(SettingsError, match=r"unknown model 'heron'.*bge-small-en-v1\.5"):
            call("model", *command)
    assert hub.connections == 0


def test_the_list_makes_no_store(elsewhere: Path) -> None:
    listed = call_json("model", "list", "--home", elsewhere)
    assert [each["key"] for each in listed["models"]] == list(models())
    assert listed["store"] is None
    assert not elsewhere.exists()


def test_what_it_says_to_people(hub: Loopback, elsewhere: Path) -> None:
    said = call("model", "list", "--home", elsewhere).stdout
    assert "bge-base-en-v1.5" in said
    assert "No vectors yet" in said
    assert f"from {hub.url}" in call("model", "fetch", "far", "--dry-run").stdout
    assert "Use it: perdure model use far" in call("model", "fetch", "far").stdout
    assert "Already using" in call("model", "use", "far", "--home", elsewhere).stdout
    assert "In use: far (384 dimensions)" in call("model", "list", "--home", elsewhere).stdout


@pytest.mark.parametrize("name", ["list", "fetch", "use"])
def test_each_command_has_an_example(name: str) -> None:
    assert f"Example: perdure model {name}" in call("model", name, "--help").output
