"""`perdure model list`, `fetch` and `use`: from the catalogue to the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.api.memory import Memory
from perdure.cli.model import model
from perdure.embed.catalogue import MINILM_INT8, MODELS, Hub, OnnxModel
from perdure.embed.load import find_weights
from perdure.errors import EndpointError, ModelError, SettingsError
from tests.loopback import Loopback, Reply, Request, loopback, served

HUB = Hub(repo="birds/far", revision="b" * 40)
FAR = replace(
    MINILM_INT8, key="far", name="far", package="", hub=HUB, file="onnx/model.onnx", tokenizer_size=466_247
)  # fmt: skip
"""The default model's own files, as if they were on a hub: a fetch ends with a model that runs."""


def call(*arguments: str) -> str:
    result = CliRunner().invoke(model, arguments, standalone_mode=False, catch_exceptions=False)
    assert result.return_value == 0
    return result.stdout


def figures(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(*arguments, "--json"))
    return found


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """A hub that has one model more than the catalogue."""
    vocabulary = MINILM_INT8.tokenizer_path
    assert vocabulary is not None
    files = {
        HUB.path(FAR.file): find_weights(MINILM_INT8).read_bytes(),
        HUB.path(FAR.tokenizer): vocabulary.read_bytes(),
    }

    def answer(request: Request) -> Reply:
        return served(files[request.path], request) if request.path in files else Reply(b"", 404)

    known: Mapping[str, OnnxModel] = MappingProxyType({**MODELS, "far": FAR})
    monkeypatch.setattr("perdure.embed.load.MODELS", known)
    monkeypatch.setattr("perdure.cli.models.MODELS", known)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with loopback(answer) as server:
        monkeypatch.setenv("PERDURE_MODEL_HUB", server.url)
        yield server


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "home")


def test_from_the_hub_into_the_store(hub: Loopback, home: str) -> None:
    with pytest.raises(ModelError, match="perdure model fetch far"):
        call("use", "far", "--home", home)
    planned = figures("fetch", "far", "--dry-run")
    assert (planned["path"], planned["forbidden"], planned["hub"]) == (None, None, hub.url)
    assert planned["files"][FAR.file] == {"bytes": FAR.size, "sha256": FAR.sha256}
    assert hub.connections == 0

    brought = figures("fetch", "far")
    assert Path(brought["path"]).read_bytes() == find_weights(MINILM_INT8).read_bytes()
    assert len(hub.requests) == 2
    assert figures("use", "far", "--home", home)["model"] == "far (384 dimensions)"
    listed = figures("list", "--home", home)
    assert listed["store"] == "far (384 dimensions)"
    assert [each["key"] for each in listed["models"] if each["used"]] == ["far"]
    assert {each["key"] for each in listed["models"] if each["path"]} == {"far", "minilm-l6-int8"}
    # The recipe is kept with the store: a process with other settings uses the model that was chosen.
    with Memory.open(home) as memory:
        assert memory.ready()
        memory.store("Anna prefers green tea")
        assert memory.recall("What does Anna like to drink?") is not None
        assert "far" in memory.status().model
    assert len(hub.requests) == 2


def test_what_is_here_is_not_fetched_again(hub: Loopback) -> None:
    assert "minilm-l6-int8 is here" in call("fetch", "minilm-l6-int8")
    assert hub.connections == 0


def test_what_is_forbidden_is_said_before_anything_is_asked(hub: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_MODEL_OFFLINE", "1")
    assert "forbidden: setting model_offline is on" in call("fetch", "far", "--dry-run")
    with pytest.raises(ModelError, match="model_offline is on"):
        call("fetch", "far")
    monkeypatch.delenv("PERDURE_MODEL_OFFLINE")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE is 1"):
        call("fetch", "far")
    assert hub.connections == 0


def test_a_hub_without_the_model(hub: Loopback) -> None:
    with pytest.raises(EndpointError, match="answered 404"):
        call("fetch", "bge-small-en-v1.5")


def test_a_model_that_nobody_knows(hub: Loopback, home: str) -> None:
    for command in (["fetch", "heron"], ["use", "heron", "--home", home]):
        with pytest.raises(SettingsError, match=r"'heron' is no model.*bge-small-en-v1\.5"):
            call(*command)
    assert hub.connections == 0


def test_the_list_makes_no_store(home: str) -> None:
    listed = figures("list", "--home", home)
    assert [each["key"] for each in listed["models"]] == list(MODELS)
    assert listed["store"] is None
    assert not Path(home).exists()


def test_what_it_says_to_people(hub: Loopback, home: str) -> None:
    said = call("list", "--home", home)
    assert "bge-base-en-v1.5" in said
    assert "the store has no vectors yet" in said
    assert f"would come from {hub.url}" in call("fetch", "far", "--dry-run")
    assert "use it: perdure model use far" in call("fetch", "far")
    assert "already" in call("use", "far", "--home", home)
    assert "the store's vectors are of far (384 dimensions)" in call("list", "--home", home)


@pytest.mark.parametrize("name", ["list", "fetch", "use"])
def test_each_command_has_an_example(name: str) -> None:
    assert f"Example: perdure model {name}" in CliRunner().invoke(model, [name, "--help"]).output
