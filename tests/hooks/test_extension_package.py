"""A real distribution, installed with pip, loaded by a fresh interpreter."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROBE = """
import json, sys
from perdure.engine.extensions import KINDS, ExtensionManager

extensions = ExtensionManager.load(disabled=json.loads(sys.argv[1]))
print(json.dumps({
    "names": {kind: sorted(getattr(extensions, kind)) for kind in KINDS},
    "problems": [[p.name, p.stage, p.error] for p in extensions.problems],
    "distributions": extensions.distributions,
    "imported": sorted(name for name in sys.modules if name.startswith("perdure_sample")),
    "identity": [factory(None).identity.model for factory in extensions.embedders.values()],
}))
"""

LIFE = """
import json, sys
from perdure import Memory, TurnContext

# Two memories that say much the same are wanted: what is ranked is to be near.
settings = {"embedder": "sample-letters", "reranker": "sample-shortest", "min_cosine": 0.0}
with Memory.open(sys.argv[1], compare={"classify": False}, **settings) as memory:
    memory.ready()
    memory.store("The staging database in Porto is called heron, and it is backed up each night.")
    memory.store("The staging database is heron.")
    recall = memory.recall("Which staging database do we have?")
    messages = [{"role": "user", "content": "BUY MORE OF THE BLUE INK"}]
    memory.turns.after(messages, True, TurnContext())
    memory.settle()
    added = [change.fact for change in memory.admin.changes() if change.action == "add"]
    print(json.dumps({
        "recalled": [item.text for item in recall.items],
        "methods": [fact.extraction_method for fact in added],
        "model": memory.status().model,
    }))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source") / "extension"
    target = tmp_path_factory.mktemp("target")
    shutil.copytree(ROOT / "tests" / "extension_package", source, ignore=shutil.ignore_patterns("__pycache__"))
    flags = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "install", *flags, "--target", str(target), str(source)]
    subprocess.run(command, check=True, timeout=100)
    return target


def load(installed: Path, *disabled: str, **variables: str) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "PERDURE_LOAD_EXTENSIONS"}
    environment |= {"PYTHONPATH": os.pathsep.join([str(installed), str(ROOT)]), **variables}
    command = [sys.executable, "-c", PROBE, json.dumps(disabled)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_all_kinds_are_registered_and_the_broken_one_is_named(installed: Path) -> None:
    answer = load(installed)

    assert answer["names"] == {
        "embedders": ["sample-letters"],
        "rerankers": ["sample-shortest"],
        "capture_rules": ["sample-shouted"],
        "hosts": ["sample-host"],
    }
    assert answer["identity"] == ["sample-letters"]
    assert answer["problems"] == [
        ["sample-broken", "import", "RuntimeError: this extension needs a part that is not there"]
    ]
    assert answer["distributions"] == [["perdure-sample-extension", "1.2.3"]]


def test_a_disabled_extension_is_not_imported(installed: Path) -> None:
    answer = load(installed, "sample", "sample-broken")

    assert answer["imported"] == []
    assert answer["problems"] == []
    assert answer["distributions"] == []


def test_the_environment_variable_turns_all_of_them_off(installed: Path) -> None:
    answer = load(installed, PERDURE_LOAD_EXTENSIONS="0")

    assert answer["imported"] == []
    assert not any(answer["names"].values())
    assert answer["problems"] == []


def test_a_store_works_with_the_embedder_the_reranker_and_the_rule(installed: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PERDURE_LOAD_EXTENSIONS"}
    environment["PYTHONPATH"] = os.pathsep.join([str(installed), str(ROOT)])
    command = [sys.executable, "-c", LIFE, str(tmp_path / "home")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(done.stdout)

    assert answer["model"] == "ready: sample-letters"
    assert len(answer["recalled"]) == 2
    assert answer["recalled"] == sorted(answer["recalled"], key=len)
    assert answer["methods"][:2] == ["explicit", "explicit"]
    assert answer["methods"][2].startswith("rule:")
