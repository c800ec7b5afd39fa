"""Packages that only one host needs, and what to say when they are not there."""

from __future__ import annotations

from importlib import import_module

from perdure.errors import ExtensionError


def need(module: str, extra: str) -> None:
    """Import a module of a host so that a later import works, or raise ExtensionError naming the extra to install."""
    try:
        import_module(module)
    except ImportError as error:
        raise ExtensionError(
            f"{module} cannot be imported ({error}); install it with: pip install 'perdure[{extra}]'"
        ) from error
