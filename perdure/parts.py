"""The way from the core to the parts around it: by name, when something asks for one.

Hosts, importers, the page, PostgreSQL, the vault, LanceDB and other models than the shipped one import the core. The
core imports none of them, so a turn that needs none of them loads none of them, and works without their files.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def part(name: str) -> Any:
    """Return a module of a part, such as "lance.drift" for `perdure.lance.drift`."""
    return import_module(f"perdure.{name}")
