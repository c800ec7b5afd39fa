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
    if as_json:
        output.json({"settings": {name: {"value": value, "from": origin} for name, value, origin in rows}})
    else:
        output.table(("setting", "value", "from"), [(name, _plain(value), origin) for name, value, origin in rows])
    return OK


@config.command()
@click.argument("name")
@json_option
def get(name: str, as_json: bool) -> int:
    """Show one setting.

    Example: perdure config get recall_limit
    """
    check_known(name)
    value = _values()[name]
    if as_json:
        Output(True).json({"name": name, "value": value, "from": Settings.origins().get(name, DEFAULT)})
    else:
        Output().line(_plain(value))
    return OK


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
    if as_json:
        Output(True).json({"name": name, "value": written, "file": str(config_file()), "overridden_by": wins})
        return OK
    Output().line(f"{name} = {_plain(written)} in {config_file()}")
    if wins:
        tell(f"{wins} is set, too, and wins")
    return OK


@config.command()
@click.argument("name")
@json_option
def unset(name: str, as_json: bool) -> int:
    """Take a setting out of your settings file, so that its default holds. Exit code 1: it was not in it.

    Example: perdure config unset recall_limit
    """
    gone = unset_setting(config_file(), name)
    if as_json:
        Output(True).json({"name": name, "removed": gone, "file": str(config_file())})
    else:
        Output().line(f"{name} is {'no longer' if gone else 'not'} in {config_file()}")
    return OK if gone else FOUND_NOTHING


@config.command()
@json_option
def path(as_json: bool) -> int:
    """Show where your settings file is, or would be.

    Example: perdure config path
    """
    if as_json:
        Output(True).json({"file": str(config_file()), "exists": config_file().is_file()})
    else:
        Output().line(str(config_file()))
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
