"""Which folder is the store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.engine.paths import config_file, data_folder, record_home, recorded_home
from perdure.errors import SettingsError
from tests.kit import for_each

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.delenv("PERDURE_HOME", raising=False)
    monkeypatch.delenv("PERDURE_CONFIG", raising=False)


def test_the_order_is_argument_variable_record_own(tmp_path: Path) -> None:
    own = data_folder(environ={})
    assert own.is_relative_to(tmp_path)
    assert own.name == "perdure"

    record_home("openclaw", tmp_path / "of-the-host")
    assert data_folder(environ={}) == tmp_path / "of-the-host"

    environ = {"PERDURE_HOME": str(tmp_path / "of-the-variable")}
    assert data_folder(environ=environ) == tmp_path / "of-the-variable"
    assert data_folder(tmp_path / "argument", environ) == tmp_path / "argument"
    assert data_folder(str(tmp_path / "argument"), environ) == tmp_path / "argument"


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert data_folder(environ={"PERDURE_HOME": ""}) == data_folder(environ={})


def test_the_answer_does_not_depend_on_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_folder("relative").is_absolute()
    assert data_folder(environ={"PERDURE_HOME": "relative"}).is_absolute()
    assert data_folder("~/store") == Path.home() / "store"


def test_the_newest_record_counts(tmp_path: Path) -> None:
    assert recorded_home() is None
    record_home("one", tmp_path / "one")
    path = record_home("other", tmp_path / "öther host")
    assert recorded_home() == tmp_path / "öther host"
    assert path.is_file()


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', '{"host": "a"}', '{"home": 7}'])
def test_a_damaged_record_is_named_with_the_way_out(tmp_path: Path, content: str) -> None:
    path = record_home("one", tmp_path / "one")
    path.write_text(content)
    with pytest.raises(SettingsError, match="delete it, or set PERDURE_HOME"):
        data_folder(environ={})
    assert data_folder(environ={"PERDURE_HOME": str(tmp_path)}) == tmp_path


def test_the_settings_file(tmp_path: Path) -> None:
    assert config_file({}).name == "config.toml"
    assert config_file({}).is_relative_to(tmp_path)
    assert config_file({"PERDURE_CONFIG": "~/mine.toml"}) == Path.home() / "mine.toml"


NOBODY = """
import pwd, sys

def nobody(uid):
    raise KeyError(uid)

pwd.getpwuid = nobody
from perdure import Memory, PerdureError
from perdure.api.doctor import examine
from perdure.engine.repository import project_of
from perdure.hosts.connect.survey import checkups

try:
    with Memory.open(embedder="none") as memory:
        memory.store("I like tea.")
    print([each.name for each in (*examine(), *checkups()) if each.wrong], str(project_of(sys.argv[1]))[:8])
except PerdureError as error:
    print(error)
"""


@for_each(
    ("named", "says"),
    [
        (("PERDURE_HOME", "PERDURE_CONFIG"), "[] project:"),
        (("PERDURE_HOME", "XDG_CONFIG_HOME"), "[] project:"),
        (("XDG_DATA_HOME", "XDG_CONFIG_HOME"), "[] project:"),
        (("PERDURE_HOME",), "this user has no home folder; set PERDURE_HOME and PERDURE_CONFIG"),
        ((), "this user has no home folder; set PERDURE_HOME and PERDURE_CONFIG"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such users")
def test_who_has_no_home_names_the_folders(tmp_path: Path, named: tuple[str, ...], says: str) -> None:
    folder = tmp_path / ("-".join(named) or "nothing")
    folder.mkdir()
    (folder / "config.toml").touch()
    places = {name: str(folder / ("config.toml" if "CONFIG" in name else "data")) for name in named}
    places |= {name: str(folder / name) for name in named if name.startswith("XDG")}
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **places}
    command = [sys.executable, "-c", NOBODY, str(folder)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(says), done.stderr
