"""Log lines whose control characters are escaped, so that no message drives the terminal."""

from __future__ import annotations

import logging
from typing import Any

from perdure.text.escape import visible


class LineFormatter(logging.Formatter):
    """Formats a message as one line and a traceback as its own lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the message as one line."""
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return a traceback, line by line."""
        return "\n".join(map(visible, super().formatException(ei).split("\n")))


def line_handler(form: str) -> logging.Handler:
    """Return a handler that writes records of this form to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(form))
    return handler
