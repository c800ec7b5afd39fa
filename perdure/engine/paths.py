"""Which folder is the store: one answer, the same from every process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

from perdure.errors import SettingsError

HOME_VARIABLE = "PERDURE_HOME"
CONFIG_VARIABLE = "PERDURE_CONFIG"


def data_folder(explicit: str | Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the data folder: the argument, else PERDURE_HOME, else the recorded host's, else the user's own."""
    if explicit is not None:
        return _with_home(lambda: Path(explicit).expanduser().absolute())
    if environ.get(HOME_VARIABLE):
        return _with_home(lambda: Path(environ[HOME_VARIABLE]).expanduser().absolute())
    return recorded_home() or _with_home(lambda: Path(platformdirs.user_data_dir("perdure", appauthor=False)))


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the settings file is: PERDURE_CONFIG, else `config.toml` in the user's config folder."""
    if environ.get(CONFIG_VARIABLE):
        return _with_home(lambda: Path(environ[CONFIG_VARIABLE]).expanduser())
    return _config_folder() / "config.toml"


def connections_folder() -> Path:
    """Return where it is kept what the configs of connected hosts were before."""
    return _config_folder() / "connected"


def record_home(host: str, home: Path) -> Path:
    """Note that a host's folder is the store from now on; return the file that says so."""
    path = _record_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"host": host, "home": str(home)}) + "\n", encoding="utf-8")
    return path


def recorded_host() -> tuple[str, Path] | None:
    """Return the name of the host that was installed into, and its folder, or None."""
    path = _record_file()
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return str(record["host"]), Path(record["home"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} cannot be read ({type(error).__name__}); delete it, or set {HOME_VARIABLE}"
        ) from error


def recorded_home() -> Path | None:
    """Return the folder of the host that was installed into, or None."""
    recorded = recorded_host()
    return recorded[1] if recorded else None


def forget_home() -> None:
    """Take back `record_home`. Without a record there is nothing to do."""
    _record_file().unlink(missing_ok=True)


def _record_file() -> Path:
    return _config_folder() / "host.json"


def _config_folder() -> Path:
    try:
        return Path(platformdirs.user_config_dir("perdure", appauthor=False))
    except RuntimeError:
        return _with_home(config_file).absolute().parent if os.environ.get(CONFIG_VARIABLE) else _with_home(Path.home)


def _with_home(find: Callable[[], Path]) -> Path:
    """Return a folder that may lie in the user's home; in a container the user may have neither home nor name."""
    try:
        return find()
    except RuntimeError:
        raise SettingsError(
            f"this user has no home folder; set {HOME_VARIABLE} and {CONFIG_VARIABLE} to full paths, or HOME"
        ) from None
