"""Changing one setting in the user's settings file, without touching anything else in it."""

from __future__ import annotations

import io
import json
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from perdure.engine.setting_sources import refuse_secrets
from perdure.engine.settings import Settings, check_known, table_of
from perdure.errors import SettingsError
from perdure.secrets.redact import redact
from perdure.store.folder import replace_file


def set_setting(file: Path, name: str, text: str) -> Any:
    """Write a setting into the file, which is made if need be, and return its value.

    `text`: the value in the form of environment variables.
    """
    value = Settings.parse(name, text)
    refuse_secrets({name: value}, str(file))
    if redact(text).text != text:
        raise SettingsError(
            f"the value for {name} looks like a secret, which settings must not hold; put it in an environment"
            " variable, and name that in embedder_key_env or llm_key_env"
        )
    content = _read(file)
    if table_of(name) is not None:
        # A table's other keys stay as they are.
        value = {**tomllib.loads(content).get(name, {}), **value}
    _write(file, with_setting(content, name, value))
    return value


def unset_setting(file: Path, name: str) -> bool:
    """Take a setting out of the file, so that its default holds, or what is none; return whether it was there."""
    before = _read(file)
    after = with_setting(before, name, None)
    if after == before:
        check_known(name)
        return False
    _write(file, after)
    return True


def with_setting(document: str, name: str, value: Any) -> str:
    """Return a TOML document in which a top-level key has this value; None: in which it is not.

    All other lines stay as they are, comments too, except those inside a value of several lines that is replaced.
    What comes out is read again and compared before it is returned.
    """
    wanted = {key: held for key, held in _parsed(document).items() if key != name}
    if value is not None:
        wanted[name] = value
    lines = io.StringIO(document).readlines()
    head = list(_statements(lines))
    place = next((span for span in head if name in _parsed("".join(lines[slice(*span)]))), None)
    table = next((at for at, line in enumerate(lines) if _is_toml(line) and _parsed(line) == {name: {}}), None)
    written = [] if value is None else [f"{name} = {_toml(value)}"]
    if place is None and table is not None and isinstance(value, dict | None):
        end = next((at for at in range(table + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
        body = "".join(lines[table + 1 : end])
        former = _parsed(body)
        for key in [key for key in former | (value or {}) if former.get(key) != (value or {}).get(key)]:
            body = with_setting(body, key, (value or {}).get(key))
        lines[table if value is None else table + 1 : end] = [body] * (value is not None)
    elif place is not None:
        kept = _comment("".join(lines[slice(*place)])) if written else ""
        lines[slice(*place)] = [f"{line}{kept}\n" for line in written]
    elif written:
        end = head[-1][1] if head else 0
        if end and not lines[end - 1].endswith("\n"):
            lines[end - 1] += "\n"
        lines[end:end] = [f"{line}\n" for line in written]
    changed = "".join(lines)
    with suppress(SettingsError):
        if _parsed(changed) == wanted:
            return changed
    raise SettingsError(f"{name} in the settings file is in a form that cannot be changed safely; edit it by hand")


def _statements(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines of the statements before the first table; comments stand alone or in one."""
    start = 0
    while start < len(lines) and not lines[start].lstrip().startswith("["):
        # A value may go over many lines: the shortest run of lines that can be read is one statement.
        end = next((end for end in range(start + 1, len(lines) + 1) if _is_toml("".join(lines[start:end]))), start)
        if end == start:
            return
        yield start, end
        start = end


def _comment(statement: str) -> str:
    """Return the comment behind a value of one line, with the space before it."""
    line = statement.rstrip("\n")
    for at in (at for at, char in enumerate(line) if char == "#"):
        before = line[:at].rstrip()
        if _is_toml(before) and _parsed(before):
            return line[len(before) :]
    return ""


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # JSON writes strings, numbers and booleans as TOML does, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _parsed(document: str) -> dict[str, Any]:
    try:
        return tomllib.loads(document)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"the settings file is not valid TOML ({error}); fix it by hand, or delete it") from None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise SettingsError(f"settings file {file} cannot be read: {error}") from error


def _write(file: Path, document: str) -> None:
    """Replace the file at once: whoever reads it sees the former one or the new one."""
    target = file.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, document.encode(), private=True)
    except OSError as error:
        raise SettingsError(f"settings file {file} cannot be written: {error}") from error
