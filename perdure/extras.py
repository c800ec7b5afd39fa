"""Packages that only one part needs, and what to say when they are not there."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from perdure.errors import ExtensionError


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra; Windows's prompt knows no other quotes than these."""
    return f'pip install "perdure[{extra}]"'


def absent(*modules: str) -> bool:
    """Return whether any of these top-level modules is not installed. None is imported: that may take seconds."""
    return any(find_spec(module) is None for module in modules)


def need(module: str, extra: str) -> None:
    """Import a module of a host so that a later import works, or raise ExtensionError naming the extra to install."""
    try:
        import_module(module)
    except ImportError as error:
        raise ExtensionError(f"{module} cannot be imported ({error}); run: {how_to_install(extra)}") from error
