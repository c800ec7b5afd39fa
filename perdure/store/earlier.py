"""Up to which change a store followed earlier rules, and whether what these hid has been brought back."""

from __future__ import annotations

from perdure.store.store import Store

RULES = "earlier_rules"
"""The number of the last change under them; the migration writes it, and a store made since has none."""
REVIVED = "revived"
"""When what they hid was brought back, epoch seconds."""


def boundary(store: Store) -> int:
    """Return the number of the last change under earlier rules; 0 if there was none."""
    return int(store.meta(RULES) or 0)


def is_due(store: Store) -> bool:
    """Return whether what earlier rules hid still waits to be brought back."""
    return boundary(store) > 0 and store.meta(REVIVED) is None
