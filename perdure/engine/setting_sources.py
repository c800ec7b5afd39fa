"""Where settings come from: the settings file, the environment, the host's config."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from perdure.engine.paths import CONFIG_VARIABLE, HOME_VARIABLE, config_file
from perdure.errors import SettingsError
from perdure.regex import lazy

PREFIX = "PERDURE_"
_NOT_SETTINGS = frozenset({
    HOME_VARIABLE, CONFIG_VARIABLE, "PERDURE_LOAD_EXTENSIONS", "PERDURE_VENV", "PERDURE_VAULT_PASSPHRASE",
    "PERDURE_FAIL_POINT", "PERDURE_HELPER", "PERDURE_STORE_KEY",
})  # fmt: skip
ADDRESSES = ("store_url", "store_direct_url")
"""Settings that hold the address of a database, in which a password may stand."""
# libpq takes nearly any character in a password. So the address is not searched for one: it has to be of the form in
# which there is room for none, but behind the user's name and in the options.
_HOST = r"(?:[^@/?:,=\s\[\]]*|\[[^@/?=\s\[\]]*\])(?::[0-9]*)?"
_ADDRESS = lazy(
    r"(?![\s\S]*%(?![0-9a-fA-F]{2}))"
    rf"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^@/?]*)@)?"
    rf"(?P<server>{_HOST}(?:,{_HOST})*(?:/[^@?=\s]*)?)(?:\?(?P<options>[^@]*))?"
)
_SECRET = lazy(r"(?i)(?:password|secret|scram_\w*key)\s*=")
_HIDDEN = "postgresql://..."
OPTIONS = "lance_storage_options"
"""The setting that holds options of an object store, among them its keys."""
_OPEN = lazy(
    r"(?i)(?:aws_|azure_storage_|azure_|google_)?"
    r"(?:region|default_region|endpoint|bucket|account_name|allow_http|virtual_hosted_style_request|s3_express"
    r"|unsigned_payload|skip_signature|timeout|connect_timeout|client_max_retries|client_retry_timeout)"
)
"""Options that hold no secret, by their names. There are too many that do to name those."""


def from_file(file: Path | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what stands in the settings file; None: the user's, if there is one."""
    path = file or config_file(environ)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        if file is not None or environ.get(CONFIG_VARIABLE):
            raise SettingsError(f"settings file {path} does not exist") from None
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"settings file {path} cannot be read: {error}") from error
    refuse_secrets(found, str(path))
    return found


def from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what variables of the environment say of settings, as text."""
    named = (variable for variable in environ if variable.startswith(PREFIX) and variable not in _NOT_SETTINGS)
    return {variable.removeprefix(PREFIX).lower(): environ[variable] for variable in named}


def refuse_secrets(values: Mapping[str, Any], where: str) -> None:
    """See that no address of a database that stands in a file brings a password, and no option of a storage a key."""
    options = values.get(OPTIONS)
    hidden = (
        [name for name, held in options.items() if not _is_open(name, held)] if isinstance(options, Mapping) else ()
    )
    if hidden:
        raise SettingsError(
            f"setting {OPTIONS} in {where} has {', '.join(map(str, hidden))}, which settings files must not hold; set"
            f" the storage's own variable in the environment, such as AWS_SECRET_ACCESS_KEY, or all options as"
            f" {PREFIX}{OPTIONS.upper()}"
        )
    for name in ADDRESSES:
        url = str(values.get(name) or "")
        if url and names_password(url):
            raise SettingsError(
                f"setting {name} in {where} has a password, or may have one, which settings files must not hold; write"
                " postgresql://USER@HOST/DATABASE, with special characters percent-encoded, and set PGPASSWORD or"
                f" PGSERVICEFILE in the environment, or the whole address as {PREFIX}{name.upper()}"
            )


def names_password(url: str) -> bool:
    """Return whether the address of a database holds a password, or something that may be one."""
    found = _ADDRESS.fullmatch(url)
    return found is None or ":" in (found["user"] or "") or bool(_SECRET.search(unquote(found["options"] or "")))


def without_password(url: str) -> str:
    """Return the address of a database as it may be shown: of one that holds a password, the server alone."""
    return server_alone(url) if names_password(url) else url


def shown_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of an object store as they may be shown: of what may be a secret, the name alone."""
    return {name: held if _is_open(name, held) else "..." for name, held in options.items()}


def _is_open(name: object, held: object) -> bool:
    return bool(_OPEN.fullmatch(str(name))) and not set("@?") & set(str(held))


def server_alone(url: str) -> str:
    """Return where a database is, without who gets in; of what may not be shown at all, nothing."""
    found = _ADDRESS.fullmatch(url)
    return found["scheme"] + found["server"] if found else _HIDDEN


def snake(key: str) -> str:
    """Return a name in camelCase as settings are named."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)
