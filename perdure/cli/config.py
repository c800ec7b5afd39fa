"""`perdure config`: what is set, where, and setting it."""

from __future__ import annotations

import json
from typing import Any

import click

from perdure.cli.options import json_option
from perdure.cli.output import FOUND_NOTHING, OK, Output, tell
from perdure.engine.config_file import set_setting, unset_setting
from perdure.engine.paths import config_file
from perdure.engine.setting_sources import ADDRESSES, without_password
from perdure.engine.settings import Settings, check_known

DEFAULT = "default"


@click.group()
def config() -> None:
    """Show and change settings. What a host's own config or a program sets is not seen here.

    Example: perdure config show
    """


@config.command()
@click.option("--changed", is_flag=True, help="Only what is set somewhere.")
@json_option
def show(changed: bool, as_json: bool) -> int:
    """Show every setting, its value and where that comes from.

    Example: perdure config show --changed
    """
    values, origins = _values(), Settings.origins()
    output = Output(as_json)
    rows = [(name, values[name], origins.get(name, DEFAULT)) for name in values if name in origins or not changed]
    output.both(
        {"settings": {name: {"value": value, "from": origin} for name, value, origin in rows}},
        ("setting", "value", "from"),
        [(name, _plain(value), origin) for name, value, origin in rows],
    )
    return OK


@config.command()
@click.argument("name")
@json_option
def get(name: str, as_json: bool) -> int:
    """Show one setting.

    Example: perdure config get recall_limit
    """
    check_known(name)
    value, origin = _values()[name], Settings.origins().get(name, DEFAULT)
    return _say(as_json, _plain(value), name=name, value=value, **{"from": origin})


@config.command(name="set")
@click.argument("name")
@click.argument("value")
@json_option
def set_(name: str, value: str, as_json: bool) -> int:
    """Write a setting to your settings file. Lists are written with commas, maps as JSON.

    Example: perdure config set recall_limit 5
    """
    written = set_setting(config_file(), name, value)
    origin = Settings.origins().get(name, DEFAULT)
    wins = None if origin == str(config_file()) else origin
    told = f"{name} = {_plain(written)} in {config_file()}"
    if wins and not as_json:
        tell(f"{wins} is set, too, and wins")
    return _say(as_json, told, name=name, value=written, file=str(config_file()), overridden_by=wins)


@config.command()
@click.argument("name")
@json_option
def unset(name: str, as_json: bool) -> int:
    """Take a setting out of your settings file, so that its default holds. Exit code 1: it was not in it.

    Example: perdure config unset recall_limit
    """
    gone = unset_setting(config_file(), name)
    told = f"{name} is {'no longer' if gone else 'not'} in {config_file()}"
    _say(as_json, told, name=name, removed=gone, file=str(config_file()))
    return OK if gone else FOUND_NOTHING


@config.command()
@json_option
def path(as_json: bool) -> int:
    """Show where your settings file is, or would be.

    Example: perdure config path
    """
    return _say(as_json, str(config_file()), file=str(config_file()), exists=config_file().is_file())


def _say(as_json: bool, line: str, **fields: Any) -> int:
    """Print a line, or with --json the fields."""
    Output(True).json(fields) if as_json else Output().line(line)
    return OK


def _values() -> dict[str, Any]:
    values = Settings.load().model_dump(mode="json")
    return values | {name: without_password(values[name]) for name in ADDRESSES if values[name]}


def _plain(value: Any) -> str:
    """Return a value as it would be written with `perdure config set`."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)
