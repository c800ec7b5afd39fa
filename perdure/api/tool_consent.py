"""What becomes of a call that would replace or forget what the user said, and has not their word for it."""

from __future__ import annotations

from typing import Any

from perdure.api.stored import SHORT_ID, Outcome
from perdure.api.tool_arguments import Arguments
from perdure.api.tool_caller import Answer, ToolCaller
from perdure.hooks.types import Consent
from perdure.store.fact import Fact
from perdure.store.safe import SafeFact
from perdure.text.clean import clip

WAITING = "waiting"
"""What became of a change that waits for the user's review."""
_BESIDE = ("category", "importance", "entity", "key", "value", "why", "tags", "decay_class")
"""What else of a memory a change may be about."""
WHOLE, LINE, SHOWN = 4_000, 100, 5
"""Characters of a memory in a question; of each of several, and how many these are."""


def consult(caller: ToolCaller, given: Arguments, names: str, old: Fact, new: SafeFact | None) -> Answer:
    """Return what is to be asked, or put the change aside, or refuse it: as the user can be asked.

    Args:
        caller: who would change it.
        given: the arguments of the call.
        names: which of them names the memory.
        old: the memory as it is.
        new: what it would be; None: forgotten.

    Raises:
        PerdureError: what waits could not be stored.
    """
    twin = None if new is None else caller.users_own(new.fact)
    if twin is not None and (twin.id != old.id or names == "supersedes"):
        text = f"Memory {_short(twin)} says so already. Nothing was changed."
        return Answer(text, {"id": twin.id, "outcome": Outcome.CONFIRMED.value})
    match caller.consent:
        case Consent.UNASKED:
            return _question(given, names, old, new)
        case Consent.UNAVAILABLE:
            return _waiting(caller, old, new)
    # In the words of a conversation the user can still say so; only what is worth a look later is put aside.
    return _refused(old, new) if names == "memory" else _beside(caller, old, new)


def consult_prune(caller: ToolCaller) -> Answer:
    """Return what is to be asked before what has expired is removed; or refuse it: it waits for nothing, it goes on."""
    if caller.consent is not Consent.UNASKED:
        text = "Nothing was removed: the user did not ask for it in this turn. Ask first, or let them `perdure prune`."
        return Answer(text, {"error": "not asked"}, refused=True)
    due = caller.admin.prune(dry_run=True)
    facts = list(caller.facts(due.removed).values())[:SHOWN]
    shown = "; ".join(f'"{clip(" ".join(fact.text.split()), LINE)}"' for fact in facts)
    what = "What expired long ago" if caller.one_of_many else f"{len(due.removed)} memories that expired long ago"
    question = f"Remove from memory for good?\n\n{what}{f', such as {shown}' if shown else ''}"
    confirm: dict[str, Any] = {"question": question, "memory": None, "old": shown, "new": None, "arguments": {}}
    return Answer("The user is asked first. Nothing was removed yet.", {"confirm": confirm}, refused=True)


def _question(given: Arguments, names: str, old: Fact, new: SafeFact | None) -> Answer:
    """Return what to ask, and the call that is to be made if they accept: it names the very version that they see."""
    again = given.model_copy(update={names: old.id})
    before, after = _shown(old, given), None if new is None else _shown(new.fact, given)
    confirm = {
        "question": f"Forget this memory?\n\n{before}" if after is None
        else f"Replace this memory?\n\nNow: {before}\nNew: {after}",
        "memory": old.id,
        "old": before,
        "new": after,
        "arguments": again.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True),
    }  # fmt: skip
    text = f"Memory {_short(old)} is what the user said, so they are asked first. Nothing was changed yet."
    return Answer(text, {"id": old.id, "confirm": confirm}, refused=True)


def _waiting(caller: ToolCaller, old: Fact, new: SafeFact | None) -> Answer:
    asked = caller.ask(old, new)
    text = (
        f"Nothing was {'forgotten' if new is None else 'changed'}: memory {_short(old)} is what the user said, and "
        f"stays. Your request waits for them as {_short(asked)}; tell them to decide with `perdure review approve "
        f"{_short(asked)}` or `perdure review reject {_short(asked)}`."
    )
    text, details = f"{text} {asked.advice}".rstrip(), {"id": old.id, "outcome": WAITING, "request": asked.id}
    return Answer(text, details | ({"redacted": list(asked.redacted)} if asked.redacted else {}))


def _beside(caller: ToolCaller, old: Fact, new: SafeFact | None) -> Answer:
    asked = caller.ask(old, new)
    text = (
        f"Stored as {_short(asked)}, your own note beside {_short(old)}, which the user said and which stays. "
        "It waits for the user's word: ask which is right; when they tell you to correct it, call memory_update."
    )
    details: dict[str, Any] = {"id": asked.id, "outcome": asked.outcome.value, "gone": [], "contradicts": old.id}
    details |= {"channel": asked.channel.value} | ({"redacted": list(asked.redacted)} if asked.redacted else {})
    return Answer(f"{text} {asked.advice}.".removesuffix(" ."), details)


def _refused(old: Fact, new: SafeFact | None) -> Answer:
    text = (
        f"Memory {_short(old)} was not {'forgotten' if new is None else 'changed'}: the user said it, and did not ask "
        "for this in the present turn. Ask the user, and call this again when they say so."
    )
    return Answer(text, {"id": old.id, "error": "not asked"}, refused=True)


def _shown(fact: Fact, given: Arguments) -> str:
    """Return a memory's text with what else the call names."""
    # In one line each: a text with line breaks could look like the other one.
    text = clip(" ".join(fact.text.split()), WHOLE)
    beside = [f"{name}: {_plain(getattr(fact, name))}" for name in _BESIDE if name in given.model_fields_set]
    return f"{text} [{'; '.join(beside)}]" if beside else text


def _plain(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, tuple) else "none" if value is None else str(value)
    return " ".join(text.split())


def _short(fact: Fact) -> str:
    return fact.id[:SHORT_ID]
