"""The people who speak in the role of the user: where there are several, each statement keeps its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perdure.regex import lazy
from perdure.speech.author import Author, author_of, name_of
from perdure.speech.spans import is_label
from perdure.speech.typed import typed
from perdure.text.clean import message_text

# A group's host may put the name in front. A key of a file is written small.
_IN_FRONT = lazy(r"\s*([^\W\d_a-z][\w'-]{1,20}(?: [^\W\d_a-z][\w'-]{1,20})?)\s?[:\uff1a]\s+(?=\S)")


def speaker_of(message: Mapping[str, Any]) -> str:
    """Return who a message says is speaking, by what its host notes or by a name in front of its text; "": nobody."""
    if name := name_of(message):
        return name
    told = _IN_FRONT.match(typed(message_text(message)))
    return told[1] if told and not is_label(told[1]) else ""


def speakers(messages: Iterable[object]) -> frozenset[str]:
    """Return the names under which people speak in a conversation; of one person alone they tell nothing."""
    people = (each for each in messages if isinstance(each, Mapping) and author_of(each) is Author.USER)
    return frozenset(filter(None, map(speaker_of, people)))


def without_name(text: str, name: str) -> str:
    """Return a text without its speaker's name in front."""
    told = _IN_FRONT.match(text)
    return text[told.end() :] if told and told[1] == name else text
