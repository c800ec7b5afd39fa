"""Capture rules of others: of extensions, kept from doing harm, and patterns that the user supplies."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from perdure.capture.statements import CaptureRule
from perdure.errors import SettingsError

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


def pattern_rules(patterns: Mapping[str, str]) -> tuple[CaptureRule, ...]:
    """Return a rule for each pattern; upper and lower case are one.

    They see one sentence of at most `MAX_SENTENCE` characters at a time, which bounds what a careless pattern costs.
    """
    return tuple(_rule(cue, pattern) for cue, pattern in patterns.items())


def _rule(cue: str, pattern: str) -> CaptureRule:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise SettingsError(
            f"capture_patterns: {cue!r} is {pattern!r}, not a regular expression ({error}); correct or remove it"
        ) from error
    if not cue.strip() or compiled.search(""):
        raise SettingsError(
            f"capture_patterns: {cue!r} is {pattern!r}; it needs a name and a pattern that does not match everything"
        )
    return lambda sentence: cue if compiled.search(sentence) else None
