"""Signals that the user supplies: regular expressions by the name of the cue they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perdure.capture.statements import CaptureRule
from perdure.errors import SettingsError


def pattern_rules(patterns: Mapping[str, str]) -> tuple[CaptureRule, ...]:
    """Return a rule for each pattern; upper and lower case are one.

    They see one sentence of at most `MAX_SENTENCE` characters at a time, which bounds what a careless pattern costs.

    Args:
        patterns: regular expressions by the name of their cue.

    Raises:
        SettingsError: a name is empty, or a pattern is none or matches everything.
    """
    return tuple(_rule(cue, pattern) for cue, pattern in patterns.items())


def _rule(cue: str, pattern: str) -> CaptureRule:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise SettingsError(
            f"capture_patterns: {cue!r} is {pattern!r}, which is no regular expression ({error}); correct or remove it"
        ) from error
    if not cue.strip() or compiled.search(""):
        raise SettingsError(
            f"capture_patterns: {cue!r} is {pattern!r}; it needs a name and a pattern that does not match everything"
        )
    return lambda sentence: cue if compiled.search(sentence) else None
