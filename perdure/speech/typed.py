"""What a person typed, out of a message as hosts hand it over: much in it may be of the host, or of another plugin."""

from __future__ import annotations

import re
from functools import lru_cache

from perdure.regex import lazy
from perdure.text.lexicon import listed

_AUTOMATED = listed("speech", "machine", "automated")
_COMMAND = listed("speech", "machine", "command")
_REMEMBER = listed("speech", "machine", "remember")
_MACHINE_TAG = listed("speech", "machine", "tag")
_UNTRUSTED = listed("speech", "shapes", "untrusted")
_UNTRUSTED_END = lazy(r"\nUntrusted context \(.*\Z", re.DOTALL)
_MARK_AT_END = lazy(r"\n\[message_id: [^\]\n]*\]\s*\Z")
_HEARTBEAT = lazy(r"HEARTBEAT\.md\b.*HEARTBEAT_OK", re.DOTALL)
_TAG = lazy(r"<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>")
_IN_FRONT = listed("speech", "shapes", "in_front")
_MENTION = lazy(r"^\s*<@", re.MULTILINE)
_LEVEL = listed("speech", "shapes", "level")
_LOGGED = lazy(r"[A-Z]{3,}\b")
_INPUT = lazy(r"<user-memory-input>((?:(?!</?user-memory-input>).)*)</user-memory-input>", re.DOTALL)
_COMMAND_PART = lazy(r"<command-(name|message|args|contents)>.*?</command-\1>", re.DOTALL)
_MOST_IN_FRONT = 4


@lru_cache(maxsize=8)
def typed(text: str) -> str:
    """Return what a person typed in a cleaned message: nothing, if a machine wrote it in their place.

    The arguments of a command that asks to remember become an order to remember. Takes time linear in the text.
    """
    while (head := _UNTRUSTED.match(text)) is not None and head.end():
        text = text[head.end() :]
    text = _MARK_AT_END.sub("", _UNTRUSTED_END.sub("", text))
    if _AUTOMATED.match(text) or _HEARTBEAT.search(text):
        return ""
    asked = _order(text)
    text = asked or without_blocks(text).strip()
    if not text or _AUTOMATED.match(text):
        return ""
    if (order := _REMEMBER.match(text)) is not None:
        return f"remember: {text[order.end() :].strip()}"
    return "" if _COMMAND.match(text) else _without_marks(text)


def _order(text: str) -> str:
    """Return what a host's envelope around an order to remember holds, as the order; "": there is none.

    A host's envelope is the whole message: one within a message may stand in anything that its user pastes.
    """
    whole = text.strip()
    inside = _INPUT.fullmatch(whole)
    if inside is not None:
        return f"/remember {inside[1].strip()}"
    command = re.search(r"<command-name>\s*(/?[\w:-]+)\s*</command-name>", text)
    if command is None or _COMMAND_PART.sub("", whole).strip():
        return ""
    arguments = re.search(r"<command-args>(.*?)</command-args>", text, re.DOTALL)
    return f"/{command[1].lstrip('/')} {arguments[1].strip() if arguments else ''}"


def without_blocks(text: str) -> str:
    """Remove blocks in tags: all that stand in front, and elsewhere those whose name no word of a language has.

    Of a block without an end, as a host cuts it, nothing tells where it ends: all that follows goes.
    """
    kept = ""
    at = 0
    while (tag := _TAG.search(text, at)) is not None:
        machine = bool(_MACHINE_TAG.search(tag[1]))
        kept += text[at : tag.start()]
        _, closed, rest = text[tag.end() :].partition(f"</{tag[1]}>") if machine or not kept.strip() else ("", "", "")
        if closed:
            text, at = rest, 0
        elif machine:
            return kept
        else:
            kept += tag[0]
            at = tag.end()
    return kept + text[at:]


def _without_marks(text: str) -> str:
    """Remove what a channel or a client puts before a message: a stamp, a name, a mention, a number of an image."""
    told = text
    if len(_MENTION.findall(text)) > 1:
        return text.strip()  # a conversation of several
    for _ in range(_MOST_IN_FRONT):
        mark = _IN_FRONT.match(told)
        if mark is None or (mark["said"] and f"[/{mark['said'].split()[0]}" in told):
            break
        rest = told[mark.end() :]
        if (mark["said"] and _LEVEL.search(mark["said"].strip())) or _LOGGED.match(rest):
            return text  # a line of a log
        told = rest
    return told.strip()
