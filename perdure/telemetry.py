"""Keeps ONNX Runtime from telling its maker of its use.

Its newer versions write a device id and a queue of events under the user's cache folder when they are imported, and
look up their maker's server seconds later. Only the environment can prevent that, and only before the import.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "ORT_DISABLE_TELEMETRY"
_TRUE = frozenset({"1", "on", "true", "y", "yes"})
"""What ONNX Runtime takes for true."""
_late = False


def turn_off() -> None:
    """Turn it off for this process and for those that it starts, unless somebody has decided on it."""
    global _late
    if not os.environ.get(VARIABLE):
        _late = "onnxruntime" in sys.modules
        os.environ[VARIABLE] = "1"


def wanted() -> bool:
    """Return whether somebody has decided that ONNX Runtime reports."""
    return os.environ.get(VARIABLE, "").strip().lower() not in _TRUE


def was_late() -> bool:
    """Return whether ONNX Runtime was imported before `turn_off`: what it has begun by then cannot be undone."""
    return _late
