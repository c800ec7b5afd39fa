"""What a host tells of its turns, and what it gets for them; and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from perdure.api.facade import Facade
from perdure.api.files import Files
from perdure.capture.intake import as_sequence
from perdure.engine.composing import in_turn
from perdure.engine.engine import audience_of, overheard
from perdure.errors import InputError
from perdure.hooks.types import Message, Messages, Opening, Recall, TurnContext
from perdure.recall.pipeline import Asked
from perdure.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from perdure.api.explain import Why
    from perdure.api.turn_history import PastTurn


_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "AIMessageChunk": "assistant",
    "function_call": "tool", "function_call_output": "tool", "reasoning": "tool",
}  # fmt: skip
"""Other words for roles, and what has a type in the place of one."""
_KNOWN = ("user", "assistant", "system", "developer", "tool", "function")


def _history(messages: Messages) -> Messages:
    """Return a host's messages with roles as they are known here."""
    if isinstance(messages, str | bytes | Mapping):
        kind = type(messages).__name__
        raise InputError(f"messages are a {kind}; give a list, as [{{'role': 'user', 'content': 'I own a boat.'}}]")
    # What hosts write there need not be hashable.
    others = tuple(_ROLES)
    return [
        {**each, "role": _ROLES[each["role"]]} if isinstance(each, Mapping) and each.get("role") in others else each
        for each in as_sequence(messages)
    ]


def understood(said: object) -> list[Message]:
    """Return messages in the shape of any framework as hosts have them.

    Raises:
        InputError: it is no list of messages, or one of them has a role or a shape that is not known.
    """
    if not isinstance(said, list | tuple):
        raise InputError("give a text, or a list of messages: [{'role': 'user', 'content': 'I own a boat.'}]")
    return [_message(_plain(each), place) for place, each in enumerate(said, 1)]


def _message(message: object, place: int) -> Message:
    if not isinstance(message, Mapping):
        kind = type(message).__name__
        raise InputError(f"message {place} is of type {kind}; give {{'role': 'user', 'content': 'I own a boat.'}}")
    named = message.get("role") or message.get("type")
    role = _ROLES.get(named, named) if isinstance(named, str) else named
    if role not in _KNOWN:
        raise InputError(f"message {place} has the role {named!r}; use one of {', '.join(_KNOWN)}")
    content = message.get("content", message.get("parts"))
    if isinstance(content, list | tuple):
        content = [_plain(part) for part in content]
    several = isinstance(content, list) and all(isinstance(part, str | Mapping) for part in content)
    if not (isinstance(content, str) or several or (content is None and role != "user")):
        raise InputError(f"message {place} has content of type {type(content).__name__}; give a text or a list of them")
    return {**message, "role": role, "content": content}


def _plain(value: object) -> object:
    """Return a framework's object for a message, or for a part of one, as the mapping that it stands for."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


class Turns(Facade):
    """The turns of a host. Obtained as `Memory.turns`.

    What a host calls names its own caller in the context; what looks back is for whom the memory was opened.
    """

    def before(self, prompt: str, context: TurnContext) -> Recall | None:
        """Recall for a host's turn; see `Recall`. None also when `auto_recall` is off, or where others listen."""
        self._engine.files.meet(context, audience_of(context))
        settings, found = self._engine.settings, None
        if settings.recalls(context.trigger) and not overheard(context, settings):
            obeyed = self._engine.obey(prompt, context)
            recalled = None if obeyed else self._engine.recall(prompt, context, Asked(expand=in_turn(settings)))
            found = self._told(recalled, context, obeyed)
        sections = Files(self._engine, context).prompt_sections(context.prompt_mode)
        return replace(found or Recall(""), sections=sections) if sections else found

    def opening(self, context: TurnContext) -> Opening | None:
        """Return what a session should begin with, once: anew only after a compaction or a change of project.

        Returns:
            Standing instructions; then, within the setting `opening_tokens`, what is needed most often though nobody
            asks for it, and what stands on a day of the next three weeks. None also when `auto_recall` is off, where
            others listen, and where there is nothing to say.

        Raises:
            StoreError: the store cannot be read.
        """
        settings = self._engine.settings
        if context.trigger != "user" or not settings.recalls(context.trigger) or overheard(context, settings):
            return None
        found = self._engine.opening(context)
        refused = self._engine.refused(context)
        if not refused:
            return found
        found = found or Opening("", placement=settings.recall_placement)
        tokens = found.tokens + estimate_tokens(refused)
        return replace(found, block=f"{found.block}\n{refused}".lstrip(), tokens=tokens)

    def _told(self, found: Recall | None, context: TurnContext, obeyed: str = "") -> Recall | None:
        """Return a recall with what the user is to be told once: of orders to forget, of secrets that are not kept."""
        told = "\n".join(filter(None, (obeyed, self._engine.refused(context))))
        if not told:
            return found
        found = found or Recall("", placement=self._engine.settings.recall_placement)
        return replace(found, block=f"{found.block}\n{told}".lstrip())

    def foresee(self, prompt: str, context: TurnContext) -> None:
        """Do what of a recall the prompt alone decides, for a host that has the prompt some time before its turn."""
        if self._engine.settings.recalls(context.trigger):
            self._engine.foresee(prompt, context)

    def after(self, messages: Messages, success: bool, context: TurnContext) -> int:
        """Take in a host's turn and return as soon as it is on disk.

        Returns:
            How many messages were taken in: none of failed turns, or when `auto_capture` is off. Then the
            conversation is not recorded either. If any was, what was said is as safe on disk as the messages;
            else it is recorded in the background.

        Raises:
            InputError: it is one text, or one message, and no list of messages.
            StoreError: they could not be written.
        """
        if not success or not self._engine.settings.heeds(context.trigger):
            return 0
        messages = _history(messages)
        self._engine.note_use(messages, context)
        if not self._engine.settings.auto_capture:
            return 0
        return self._engine.take_in(messages, context)

    def before_compaction(self, messages: Messages, context: TurnContext) -> int:
        """Take in what a host is about to drop from a conversation, as `after` does, and index all of it."""
        taken = self.after(messages, True, context)
        self._engine.compacted(context)
        if context.session_id:
            self._engine.files.ended(context.session_id)
        return taken

    def session_start(self, context: TurnContext) -> None:
        """Take note that a conversation begins or goes on."""
        self._engine.files.meet(context, audience_of(context))
        if context.session_id:
            self._engine.files.sync.begun(context.session_id)
            self._engine.end_moments(context, others=True)

    def session_end(self, context: TurnContext) -> None:
        """Take note that a conversation is over, so that all of it can be found, and what was of the moment ends."""
        if context.session_id:
            self._engine.files.ended(context.session_id)
            self._engine.end_moments(context)

    def adopt(self) -> None:
        """Take in, soon, what processes that have ended left in the inbox: a host with many calls this now and then."""
        self._engine.recover()

    def past(
        self, limit: int = 50, *, before: float | None = None, marked: bool = False, fact_id: str | None = None
    ) -> Sequence[PastTurn]:
        """Return turns with a recall, newest first.

        Args:
            limit: so many at the most.
            before: only older ones, epoch seconds.
            marked: only those in which a memory is marked.
            fact_id: only those, of so many, in which the memory with this whole id came up.

        Raises:
            InputError: the limit is out of range.
        """
        from perdure.api import turn_history

        return turn_history.past(self._engine, self._context, limit, before, marked, fact_id)

    def one(self, turn: str) -> PastTurn:
        """Return a turn by its receipt's id, or the first eight digits of it.

        Raises:
            NotFoundError: there is no such turn.
        """
        from perdure.api import turn_history

        return turn_history.one(self._engine, self._context, turn)

    def replay(self, turn: str) -> Why:
        """Ask a turn's prompt anew, of the store and by the gate as they are today. Nothing is counted or kept.

        Raises:
            NotFoundError: there is no such turn.
        """
        from perdure.api import turn_history

        return turn_history.replay(self._engine, self._context, turn)

    def mark(self, turn: str, fact_id: str, wanted: bool | None) -> PastTurn:
        """Say whether a memory should have come up in a turn, so that `perdure eval` asks for it.

        Args:
            turn: the receipt's id, or the first eight digits of it.
            fact_id: of the memory, or the beginning of it.
            wanted: whether it should have come; None: take back what was said.

        Returns:
            The turn, which is kept from now on however old it is, unless it is purged.

        Raises:
            NotFoundError, AmbiguousIdError: the turn or the memory is not there.
            StoreError: it could not be written.
        """
        from perdure.api import turn_history

        return turn_history.mark(self._engine, self._context, turn, fact_id, wanted)
