"""Four sources of settings, one model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from perdure.cli.main import cli
from perdure.engine.config_file import set_setting
from perdure.engine.settings import Settings, table_of
from perdure.errors import SettingsError
from perdure.hooks.types import Placement
from tests.kit import OpenMemory

SOURCES = ("file", "host", "environment", "keywords")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A settings file without settings."""
    return written(tmp_path, b"")


def written(folder: Path, content: bytes) -> Path:
    path = folder / "config.toml"
    path.write_bytes(content)
    return path


def load(
    keywords: Mapping[str, Any] | None = None,
    *,
    host: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path,
) -> Settings:
    return Settings.load(keywords, host_config=host, environ=environ or {}, file=file)


def test_everything_has_a_default_that_is_on(empty: Path) -> None:
    settings = load(file=empty)
    assert settings.auto_recall
    assert settings.auto_capture
    assert settings.model_path is None


@pytest.mark.parametrize("strongest", range(len(SOURCES)))
def test_a_stronger_source_wins(tmp_path: Path, strongest: int) -> None:
    given = dict(zip(SOURCES, (11, 12, 13, 14), strict=True))
    given = {source: value for source, value in given.items() if source in SOURCES[: strongest + 1]}
    settings = load(
        {"recall_limit": given["keywords"]} if "keywords" in given else None,
        host={"recallLimit": given["host"]} if "host" in given else None,
        environ={"PERDURE_RECALL_LIMIT": str(given["environment"])} if "environment" in given else {},
        file=written(tmp_path, b"recall_limit = 11\n"),
    )
    assert settings.recall_limit == 11 + strongest


def test_sources_add_up(tmp_path: Path) -> None:
    settings = load(
        {"recall_limit": 3},
        host={"recallFormat": "short"},
        environ={"PERDURE_AUTO_CAPTURE": "false"},
        file=written(tmp_path, b"min_cosine = 0.4\n"),
    )
    assert (settings.recall_limit, settings.recall_format) == (3, "short")
    assert (settings.auto_capture, settings.min_cosine) == (False, 0.4)


@pytest.mark.parametrize(
    ("key", "hint"), [("auto_recal", "auto_recall"), ("recal_limit", "recall_limit"), ("embeder", "embedder")]
)
@pytest.mark.parametrize("source", SOURCES)
def test_an_unknown_key_is_named_with_its_nearest_match(tmp_path: Path, source: str, key: str, hint: str) -> None:
    content = f'{key} = "1"\n'.encode() if source == "file" else b""
    camel = "".join(part.title() if at else part for at, part in enumerate(key.split("_")))
    with pytest.raises(SettingsError, match=rf"'{key}' is unknown; did you mean {hint}\?"):
        load(
            {key: 1} if source == "keywords" else None,
            host={camel: 1} if source == "host" else None,
            environ={f"PERDURE_{key.upper()}": "1"} if source == "environment" else {},
            file=written(tmp_path, content),
        )


def test_a_refused_value_is_told_in_our_words_alone(empty: Path) -> None:
    with pytest.raises(SettingsError, match=r"^setting opening_tokens = 50: must be 0, or at least 130"):
        load({"opening_tokens": 50}, file=empty)


def test_a_key_like_no_other_gets_the_list(empty: Path) -> None:
    with pytest.raises(SettingsError, match=r"known settings: .*auto_recall.*recall_limit"):
        load({"zzzzzzzz": 1}, file=empty)


@pytest.mark.parametrize("source", SOURCES)
def test_a_table_is_taken_from_every_source_and_keeps_the_other_defaults(tmp_path: Path, source: str) -> None:
    settings = table(tmp_path, source, "capture_limits", "captureLimits", {"max_chars": 400}, {"maxChars": 400})
    assert settings.capture_limits.max_chars == 400
    assert settings == Settings.model_validate({"capture_limits": {"max_chars": 400}})


def test_each_key_of_a_table_comes_from_the_strongest_source_that_has_it(tmp_path: Path) -> None:
    settings = load(
        {"jobs": {"backup": 1}},
        host={"jobs": {"backup": 3, "export": 3, "tidy": 3}},
        environ={"PERDURE_JOBS": '{"backup": 2, "export": 2}'},
        file=written(tmp_path, b"[jobs]\nbackup = 4\nprune = 4\ntidy = 4\n"),
    )
    assert settings == Settings.model_validate({"jobs": {"backup": 1, "export": 2, "tidy": 3, "prune": 4}})


@pytest.mark.parametrize("source", SOURCES)
def test_an_unknown_key_of_a_table_is_named_with_its_nearest_match(tmp_path: Path, source: str) -> None:
    with pytest.raises(SettingsError, match=r"'search\.max_result' is unknown; did you mean search\.max_results\?"):
        table(tmp_path, source, "search", "search", {"max_result": 4}, {"maxResult": 4})
    with pytest.raises(SettingsError, match=r"'jobs\.zzz' is unknown; known settings: prune, .*tidy"):
        table(tmp_path, source, "jobs", "jobs", {"zzz": 4}, {"zzz": 4})


@pytest.mark.parametrize("source", SOURCES)
def test_a_value_in_a_table_that_does_not_fit_is_named(tmp_path: Path, source: str) -> None:
    with pytest.raises(SettingsError, match=r"setting search\.min_score = 2: "):
        table(tmp_path, source, "search", "search", {"min_score": 2}, {"minScore": 2})


def table(
    folder: Path, source: str, name: str, camel: str, value: Mapping[str, object], hosted: Mapping[str, object]
) -> Settings:
    """Load a table from one source."""
    line = f"{name} = {{{', '.join(f'{key} = {held}' for key, held in value.items())}}}\n"
    return load(
        {name: value} if source == "keywords" else None,
        host={camel: hosted} if source == "host" else None,
        environ={f"PERDURE_{name.upper()}": json.dumps(value)} if source == "environment" else {},
        file=written(folder, line.encode() if source == "file" else b""),
    )


@pytest.mark.parametrize(
    ("key", "hint"), [("backup_hours", "jobs.backup"), ("chunk_tokens", "search.chunk_tokens"), ("turn", "limits.turn")]
)
def test_a_key_of_a_table_that_stands_alone_is_led_to_it(empty: Path, key: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=rf"'{key}' is unknown; did you mean (capture_)?{hint}\?"):
        load({key: 1}, file=empty)


@pytest.mark.parametrize(
    ("key", "now"),
    [("agent_log_reminds", 'agent_log = "remind"'), ("model_hub", "HF_ENDPOINT, in the environment"),
     ("retention_days", "keep.expired_days")],
)  # fmt: skip
def test_a_setting_that_has_moved_is_refused_with_its_new_name(tmp_path: Path, key: str, now: str) -> None:
    file = written(tmp_path, f"{key} = 1\n".encode())
    with pytest.raises(SettingsError, match=rf"^setting '{key}' is now {re.escape(now)} \(set in .*config\.toml\)$"):
        load(file=file)


@pytest.mark.parametrize("value", [7, "daily", ["backup"], None])
def test_what_is_no_table_is_refused(empty: Path, value: object) -> None:
    with pytest.raises(SettingsError, match="setting jobs = "):
        load({"jobs": value}, file=empty)


def test_a_table_in_the_environment_is_json(empty: Path) -> None:
    with pytest.raises(SettingsError, match="PERDURE_JOBS must be a JSON object"):
        load(environ={"PERDURE_JOBS": "backup=3"}, file=empty)
    with pytest.raises(SettingsError, match=r"setting jobs = \[3\]: "):
        load(environ={"PERDURE_JOBS": "[3]"}, file=empty)


def test_words_inside_a_table_are_no_names(empty: Path) -> None:
    settings = load(host={"directives": {"tasks": {"deployNow": ["rollOut"]}}}, file=empty)
    assert settings.directives.tasks == {"deployNow": ("rollOut",)}


def test_every_setting_and_key_is_described() -> None:
    assert set(Settings.descriptions()) == set(Settings.model_fields)
    for name in Settings.model_fields:
        if (kind := table_of(name)) and name != "jobs":
            assert set(kind.descriptions()) == set(kind.model_fields), name


def test_every_job_that_runs_by_itself_has_an_interval(open_memory: OpenMemory) -> None:
    assert set(open_memory().admin.jobs()) - {"revive"} == set(dict(Settings().jobs))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("recall_limit", 0),
        ("recall_limit", 101),
        ("recall_limit", "many"),
        ("recall_max_tokens", 49),
        ("recall_deadline_ms", 0),
        ("recall_format", "long"),
        ("recall_placement", "middle"),
        ("min_cosine", 1.5),
        ("min_cosine", "high"),
        ("vector_index", "faiss"),
        ("auto_recall", "perhaps"),
        ("auto_recall", None),
    ],
)
def test_a_value_that_does_not_fit_is_named(empty: Path, key: str, value: object) -> None:
    with pytest.raises(SettingsError, match=rf"setting {key} = {value!r}: "):
        load({key: value}, file=empty)


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("PERDURE_AUTO_RECALL", "false", "auto_recall", False),
        ("PERDURE_AUTO_RECALL", "0", "auto_recall", False),
        ("PERDURE_AUTO_RECALL", "on", "auto_recall", True),
        ("PERDURE_RECALL_LIMIT", "7", "recall_limit", 7),
        ("PERDURE_MIN_COSINE", "0.25", "min_cosine", 0.25),
        ("PERDURE_RECALL_PLACEMENT", "system", "recall_placement", Placement.SYSTEM),
        ("PERDURE_MODEL_PATH", "/models/a.onnx", "model_path", Path("/models/a.onnx")),
        ("PERDURE_DISABLED_EXTENSIONS", "one,two", "disabled_extensions", ("one", "two")),
    ],
)  # fmt: skip
def test_variables_are_read_as_their_settings(empty: Path, variable: str, text: str, key: str, value: object) -> None:
    assert getattr(load(environ={variable: text}, file=empty), key) == value


@pytest.mark.parametrize(("text", "value"), [("", ()), ("one, two", ("one", "two"))])
def test_a_list_in_a_variable_may_be_empty_or_spaced(empty: Path, text: str, value: tuple[str, ...]) -> None:
    assert load(environ={"PERDURE_DISABLED_EXTENSIONS": text}, file=empty).disabled_extensions == value


@pytest.mark.parametrize("variable", ["PERDURE_HOME", "PERDURE_CONFIG", "PERDURE_LOAD_EXTENSIONS", "HOME", "PATH"])
def test_variables_that_are_no_settings_are_left_alone(empty: Path, variable: str) -> None:
    assert load(environ={variable: "/somewhere"}, file=empty) == load(file=empty)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbfrecall_limit = 4\r\nrecall_format = 'minimal'\r\n")
    settings = load(file=path)
    assert (settings.recall_limit, settings.recall_format) == (4, "minimal")


@pytest.mark.parametrize("content", [b"recall_limit = \n", b"\xff\xfe\x00", b"= 1", b"[recall\n"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    with pytest.raises(SettingsError, match=r"config\.toml cannot be read"):
        load(file=path)


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load(file=tmp_path)


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(SettingsError, match=r"none\.toml does not exist"):
        load(file=missing)
    with pytest.raises(SettingsError, match=r"none\.toml does not exist"):
        Settings.load(environ={"PERDURE_CONFIG": str(missing)})


def test_the_file_that_the_environment_names_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, b"recall_limit = 4\n")
    assert Settings.load(environ={"PERDURE_CONFIG": str(path)}).recall_limit == 4


def test_numbers_that_mean_nothing_are_refused_in_words(empty: Path) -> None:
    with pytest.raises(SettingsError, match=r"compare\.vector = 0\.3: .*0, or a cosine from 0\.5 to 1"):
        Settings.load({"compare": {"vector": 0.3}}, file=empty)
    with pytest.raises(SettingsError, match=r"compare\.auto_link = True: .*a number of links, 0 for none"):
        Settings.load({"compare": {"auto_link": True}}, file=empty)


def test_settings_do_not_change(empty: Path) -> None:
    settings = load(file=empty)
    with pytest.raises(ValueError, match="frozen"):
        settings.recall_limit = 3


URL = "postgresql://perdure:hunter2@db.example/perdure"


@pytest.mark.parametrize("url", [URL, "postgresql://perdure@db.example/perdure?password=hunter2"])
@pytest.mark.parametrize("where", ["file", "host", "set"])
def test_a_password_is_refused_where_it_would_lie_about_and_told_to_nobody(
    tmp_path: Path, where: str, url: str
) -> None:
    file = written(tmp_path, f'store_url = "{url}"'.encode() if where == "file" else b"")
    host = {"storeUrl": url} if where == "host" else None
    with pytest.raises(SettingsError, match="has a password") as refused:
        _ = (
            set_setting(file, "store_direct_url", url)
            if where == "set"
            else Settings.load(environ={}, file=file, host_config=host)
        )
    assert "hunter2" not in str(refused.value)


def test_a_password_of_the_environment_is_used_and_shown_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERDURE_STORE_URL", URL)
    assert Settings.load().store_url == URL
    assert "hunter2" not in repr(Settings.load())
    calls = (["config", "get", "store_url"], ["config", "show", "--json"], ["config", "show"])
    shown = "".join(CliRunner().invoke(cli, call).output for call in calls)
    assert "hunter2" not in shown
    assert "postgresql://db.example/perdure" in shown
