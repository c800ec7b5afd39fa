"""Capture rules of extensions, kept from doing harm."""

from __future__ import annotations

import logging

from perdure.capture.statements import CaptureRule

_log = logging.getLogger("perdure.capture")


def guarded(rule: CaptureRule) -> CaptureRule:
    """Return the rule so that it never raises: where it fails, it has nothing to say."""

    def ask(sentence: str) -> str | None:
        try:
            cue = rule(sentence)
        except Exception as error:  # noqa: BLE001 - a rule is other people's code; the sentence is judged without it
            _log.warning("capture rule %s raised %s", getattr(rule, "__qualname__", "?"), type(error).__name__)
            return None
        return cue if isinstance(cue, str) and cue else None

    return ask
