"""The memories that the tests of the plugin open, for the tests of hosts."""

from __future__ import annotations

from tests.plugin.conftest import clock, home, open_memory

__all__ = ["clock", "home", "open_memory"]
