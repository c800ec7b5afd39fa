"""An extension that cannot be imported."""

from __future__ import annotations

raise RuntimeError("this extension needs a part that is not there")
