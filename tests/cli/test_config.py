"""`perdure config` and `perdure uninstall`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.memory import Memory
from perdure.engine.config_file import with_setting
from perdure.engine.paths import config_file, data_folder, record_home, recorded_home
from perdure.engine.settings import Settings
from perdure.errors import InputError, SettingsError, StoreBusyError
from tests.cli.calling import call, call_json
from tests.kit import for_each


def test_a_setting_is_written_read_and_taken_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is changed is to be this one setting alone; no store is opened here.
    monkeypatch.delenv("PERDURE_TIMERS")
    assert call_json("config", "get", "recall_limit") == {"name": "recall_limit", "value": 10, "from": "default"}
    call("config", "set", "recall_limit", "5")
    assert Settings.load().recall_limit == 5
    shown = call_json("config", "show", "--changed")["settings"]
    assert shown == {"recall_limit": {"value": 5, "from": str(config_file())}}
    assert set(call_json("config", "show")["settings"]) == set(Settings.model_fields)
    call("config", "unset", "recall_limit")
    call("config", "unset", "recall_limit", code=1)
    assert Settings.load().recall_limit == 10
    assert call_json("config", "path") == {"file": str(config_file()), "exists": True}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("auto_recall", "no", False),
        ("sources", "memory", ("memory",)),
        ("sources", "", ()),
        ("summary_threshold", "75", 75),
        ("workspace", "/notes", Path("/notes")),
        ("search", '{"half_life_days": 7.5}', {"half_life_days": 7.5}),
        ("directives", '{"tasks": {"deploy": ["heron", "café"]}}', {"tasks": {"deploy": ("heron", "café")}}),
        ("embedder_model", 'Say "yes" # or\nno', 'Say "yes" # or\nno'),
    ],
)
def test_every_kind_of_value_comes_back_as_it_was_set(name: str, text: str, value: object) -> None:
    call("config", "set", name, text)
    assert getattr(Settings.load(), name) == getattr(Settings.model_validate({name: value}), name)


def test_what_wins_over_the_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_RECALL_LIMIT", "7")
    assert call_json("config", "set", "recall_limit", "5")["overridden_by"] == "PERDURE_RECALL_LIMIT"
    assert call_json("config", "get", "recall_limit")["from"] == "PERDURE_RECALL_LIMIT"


def test_what_cannot_be_set_is_refused_and_the_file_stays() -> None:
    call("config", "set", "recall_limit", "5")
    before = config_file().read_bytes()
    for name, value, message in (
        ("recal_limit", "5", "did you mean recall_limit"),
        ("recall_limit", "0", "recall_limit = '0'"),
        ("directives", "{", "JSON"),
        ("search", '{"min_scor": 0.5}', "did you mean search.min_score"),
        ("search", '{"min_score": 2}', "setting search.min_score = 2: "),
        ("llm_model", "AKIA" + "Q3EGRZTJPL5RMXWN", "looks like a secret"),
    ):
        with pytest.raises(SettingsError, match=message):
            call("config", "set", name, value)
    for wrong in (("get", "recal_limit"), ("unset", "recal_limit")):
        with pytest.raises(SettingsError, match="did you mean"):
            call("config", *wrong)
    assert config_file().read_bytes() == before


def test_the_other_keys_of_a_table_stay_as_they_were_set() -> None:
    assert call("config", "set", "jobs", '{"backup": 12}').code == 0
    assert call("config", "set", "jobs", '{"prune": 2}').code == 0
    assert tomllib.loads(config_file().read_text())["jobs"] == {"backup": 12.0, "prune": 2.0}


def test_a_key_that_is_no_setting_is_named_with_its_file_and_can_be_taken_out() -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text("recal_limit = 5\n")
    with pytest.raises(SettingsError, match=rf"did you mean recall_limit\? \(set in {config_file()}\)"):
        call("config", "show")
    call("config", "unset", "recal_limit")
    call("config", "show")


def test_comments_and_everything_else_in_the_file_stay() -> None:
    config_file().parent.mkdir(parents=True)
    config_file().write_text(
        '# mine\nrecall_limit = 5   # few\nsources = [\n  "memory", # notes\n]\n\n'
        '[tag_patterns]\nbird = "heron|egret"\n'
    )
    call("config", "set", "recall_limit", "6")
    call("config", "set", "watch", "false")
    config_file().chmod(0o644)
    call("config", "set", "sources", "memory,sessions")
    assert config_file().stat().st_mode & 0o777 == 0o600
    assert config_file().read_text() == (
        '# mine\nrecall_limit = 6   # few\nsources = ["memory", "sessions"]\n\nwatch = false\n'
        '[tag_patterns]\nbird = "heron|egret"\n'
    )


@for_each(
    ("file", "name", "value", "after"),
    [
        ("[keep]\n", "keep", {"copies": 3}, "[keep]\ncopies = 3\n"),
        (
            "watch = true\n[keep] # mine\ncopies = 5 # few\nreceipt_days = 1.0\n\n[jobs]\nprune = 2.0\n", "keep",
            {"copies": 3}, "watch = true\n[keep] # mine\ncopies = 3 # few\nreceipt_days = 1.0\n\n[jobs]\nprune = 2.0\n",
        ),
        ("[jobs]\n# often\nprune = 2.0", "jobs", {"files": 1}, "[jobs]\n# often\nprune = 2.0\nfiles = 1.0\n"),
        ('[tag_patterns]\nbird = "heron"\n', "tag_patterns", {"cat": "tom"}, '[tag_patterns]\ncat = "tom"\n'),
        ("# top\n[keep]\ncopies = 5\n[jobs]\nprune = 2.0\n", "keep", None, "# top\n[jobs]\nprune = 2.0\n"),
    ],
)  # fmt: skip
def test_a_table_under_its_own_heading_is_changed_within(file: str, name: str, value: object, after: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(file)
    call("config", *(("unset", name) if value is None else ("set", name, json.dumps(value))))
    assert config_file().read_text() == after


def test_a_table_that_is_set_in_two_places_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    call("config", "set", "keep", '{"copies": 3}')
    monkeypatch.setenv("PERDURE_KEEP", '{"receipt_days": 2}')
    shown = call_json("config", "get", "keep")
    assert (shown["value"]["copies"], shown["value"]["receipt_days"]) == (3, 2)
    assert shown["from"] == f"PERDURE_KEEP over {config_file()}"


VALUES = st.one_of(
    st.booleans(), st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8")), st.lists(st.text("ab #=[]\"'\n"), max_size=3),
)  # fmt: skip
LINES = st.lists(
    st.sampled_from(["# comment", "", "a = 1", "b = [1,", "2]", "c = , ", 'd = "#" # x', "[t]", "e = 2", "a.b = 3"]),
    max_size=8,
)


@given(LINES, st.sampled_from("abcde"), VALUES)
def test_only_the_one_key_changes_whatever_the_file_looks_like(lines: list[str], name: str, value: object) -> None:
    document = "\n".join(lines)
    try:
        before = tomllib.loads(document)
    except tomllib.TOMLDecodeError:
        with pytest.raises(SettingsError, match="not valid TOML"):
            with_setting(document, name, value)
        return
    try:
        changed = with_setting(document, name, value)
    except SettingsError:
        assert isinstance(before.get(name), dict)
        return
    assert tomllib.loads(changed) == before | {name: value}
    if name not in before:
        assert changed.count("# comment") == document.count("# comment")
    removed = tomllib.loads(with_setting(changed, name, None))
    assert removed == {key: held for key, held in before.items() if key != name}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return the folder of a host that perdure was installed into, with a memory in it."""
    home = tmp_path / "host" / "memory"
    with Memory.open(home, embedder="none") as memory:
        memory.store("The staging database is called heron.")
        memory.admin.backup()
    record_home("openclaw", home)
    return home


def test_uninstall_forgets_the_host_and_keeps_the_memories(installed: Path) -> None:
    told = call("uninstall", "--dry-run").stdout
    assert "openclaw" in told
    assert recorded_home() == installed
    assert call_json("uninstall")["done"] is True
    assert recorded_home() is None
    assert (installed / "facts.db").is_file()
    assert data_folder() != installed
    call("uninstall")


def test_the_data_goes_only_when_confirmed_and_nothing_else_with_it(installed: Path) -> None:
    (installed / "thesis.md").write_text("mine")
    shown = call("uninstall", "--purge-data", "--dry-run").stdout
    assert "backups" in shown
    assert "thesis.md" in shown
    with pytest.raises(click.Abort):
        call("uninstall", "--purge-data", stdin="n\n")
    assert (installed / "facts.db").is_file()
    opened = [Memory.open(installed, embedder="none") for _ in range(2)]
    with pytest.raises(StoreBusyError, match="in use"):
        call("uninstall", "--purge-data", "--yes")
    for memory in opened:
        memory.close()
    assert (installed / "facts.db").is_file()
    call("uninstall", "--purge-data", "--yes")
    assert [path.name for path in installed.iterdir()] == ["thesis.md"]
    with pytest.raises(InputError, match="no store"):
        call("uninstall", "--purge-data", "--yes", "--home", installed)
    assert [path.name for path in installed.iterdir()] == ["thesis.md"]


def test_a_folder_with_nothing_else_in_it_goes_as_a_whole(installed: Path) -> None:
    call("uninstall", "--purge-data", "--yes")
    assert not installed.exists()
