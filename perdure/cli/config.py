"""`perdure config`: show and change settings."""

from __future__ import annotations

import json
from typing import Any

import click

from perdure.api import consent
from perdure.cli.operation import operation
from perdure.cli.output import FOUND_NOTHING, OK, Output, tell
from perdure.engine.config_file import set_setting, unset_setting
from perdure.engine.paths import config_file, data_folder
from perdure.engine.setting_sources import ADDRESSES, OPTIONS, shown_options, without_password
from perdure.engine.settings import Settings, check_known

DEFAULT = "default"


@click.group()
def config() -> None:
    """Show and change settings.

    Settings from a host's own config or from code are not shown.

    Example: perdure config show
    """


@operation(config)
@click.option("--changed", is_flag=True, help="Only settings that are set explicitly.")
def show(output: Output, changed: bool) -> None:
    """Show every setting, its value and its source.

    Example: perdure config show --changed
    """
    values, origins = _values(), Settings.origins()
    rows = [(name, values[name], origins.get(name, DEFAULT)) for name in values if name in origins or not changed]
    output.json({"settings": {name: {"value": value, "from": origin} for name, value, origin in rows}})
    none = "Every setting has its default value. Change one: perdure config set NAME VALUE"
    output.table(
        ("setting", "value", "from"), [(name, _plain(value), origin) for name, value, origin in rows], none=none
    )


@operation(config)
def get(output: Output, name: str) -> None:
    """Show one setting.

    Example: perdure config get recall_limit
    """
    check_known(name)
    value, origin = _values()[name], Settings.origins().get(name, DEFAULT)
    output.say({"name": name, "value": value, "from": origin}, _plain(value))


@operation(config, "set")
def set_(output: Output, name: str, value: str) -> None:
    """Write a setting to your settings file.

    Separate list items with commas; write maps as JSON.

    Example: perdure config set recall_limit 5
    """
    written = set_setting(config_file(), name, value)
    if name == consent.SETTING:
        consent.keep(data_folder(), written)
    origin = Settings.origins().get(name, DEFAULT)
    wins = None if origin == str(config_file()) else origin
    told = f"{name} = {_plain(written)} in {config_file()}"
    if wins and not output.as_json:
        tell(f"{wins} overrides it")
    output.say({"name": name, "value": written, "file": str(config_file()), "overridden_by": wins}, told)


@operation(config)
def unset(output: Output, name: str) -> int:
    """Remove a setting from your settings file.

    Its default applies again. Exit code 1: it was not set there.

    Example: perdure config unset recall_limit
    """
    if name == consent.SETTING:
        consent.keep(data_folder(), False)
    gone = unset_setting(config_file(), name)
    told = f"{name} {'removed from' if gone else 'is not set in'} {config_file()}"
    output.say({"name": name, "removed": gone, "file": str(config_file())}, told)
    return OK if gone else FOUND_NOTHING


@operation(config)
def path(output: Output) -> None:
    """Print the path of your settings file.

    Example: perdure config path
    """
    output.say({"file": str(config_file()), "exists": config_file().is_file()}, str(config_file()))


def _values() -> dict[str, Any]:
    values = Settings.load().model_dump(mode="json")
    shown = {name: without_password(values[name]) for name in ADDRESSES if values[name]}
    return values | shown | {OPTIONS: shown_options(values[OPTIONS])}


def _plain(value: Any) -> str:
    """Return a value as `perdure config set` takes it."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, dict) else str(value)
