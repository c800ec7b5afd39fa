"""The turns of a host: recall, capture, and their history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perdure.api.facade import Facade
from perdure.api.files import Files
from perdure.capture.intake import as_sequence
from perdure.engine.audiences import audience_of, overheard
from perdure.engine.composing import in_turn
from perdure.errors import InputError, expect
from perdure.hooks.types import Message, Messages, Opening, Recall, TurnContext
from perdure.parts import part
from perdure.recall.past_failures import Act
from perdure.recall.pipeline import Asked
from perdure.recall.receipt import Receipt
from perdure.speech.author import uses_tools, vouched_for
from perdure.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from perdure.api.explain import Why
    from perdure.api.turn_history import PastTurn


_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "AIMessageChunk": "assistant",
    "function_call": "tool", "function_call_output": "tool", "reasoning": "tool",
}  # fmt: skip
"""Aliases of roles, including message types used as roles."""
_KNOWN = ("user", "assistant", "system", "developer", "tool", "function")


def _history(messages: Messages) -> Messages:
    """Return a host's messages with roles as they are known here."""
    if isinstance(messages, str | bytes | Mapping):
        kind = type(messages).__name__
        raise InputError(f"messages is a {kind}; pass a list, such as [{{'role': 'user', 'content': 'I own a boat.'}}]")
    # What hosts write there need not be hashable.
    others = tuple(_ROLES)
    return [
        {**each, "role": _ROLES[each["role"]]} if isinstance(each, Mapping) and each.get("role") in others else each
        for each in as_sequence(messages)
    ]


def _is_of_tools(message: object) -> bool:
    return isinstance(message, Mapping) and (uses_tools(message) or "tool_call_id" in message)


def understood(said: object) -> list[Message]:
    """Convert messages in the form of any framework to those of hosts.

    Raises:
        InputError: it is not a list of messages, or one of them has an unknown role or shape.
    """
    if not isinstance(said, list | tuple):
        raise InputError("give a string, or a list of messages: [{'role': 'user', 'content': 'I own a boat.'}]")
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
        raise InputError(f"message {place} has content of type {type(content).__name__}; give a string or a list")
    return {**message, "role": role, "content": content}


def _plain(value: object) -> object:
    """Convert a framework's message object, or a part of one, to a mapping."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


_CONTEXT = "a TurnContext, such as TurnContext(session_id='1')"


def _expect_turn(context: object, prompt: object = "") -> None:
    expect(context, TurnContext, _CONTEXT, "context")
    expect(prompt, str, "a text", "prompt")


class Turns(Facade):
    """The turns of a host. Obtained from `Memory.turns`.

    Methods for hosts take the caller from the context; those that look back use the caller of the memory.
    """

    def before(self, prompt: str, context: TurnContext) -> Recall | None:
        """Recall for a host's turn; see `Recall`. Also None if `auto_recall` is off, or in a group chat."""
        _expect_turn(context, prompt)
        self._engine.files.meet(context, audience_of(context))
        settings, found, opening = self._engine.settings, None, None
        if settings.recalls(context.trigger) and not overheard(context, settings):
            obeyed = self._engine.obey(prompt, context)
            opening = self.opening(context) if context.takes_opening and context.session_id else None
            asked = Asked(
                expand=in_turn(settings), ids=context.has_tools,
                shown=[item.id for item in opening.items] if opening else (),
            )  # fmt: skip
            # Read before the receipt of the recall is written beside it.
            notices = "\n".join(filter(None, (obeyed, self._engine.refused(context))))
            found = None if obeyed else self._engine.recall(prompt, context, asked)
            if notices:
                found = found or Recall("", placement=settings.recall_placement)
                found = replace(found, block=f"{found.block}\n{notices}".lstrip())
        sections = Files(self._engine, context).prompt_sections(context.prompt_mode)
        more = sections or opening
        return replace(found or Recall(""), sections=sections, opening=opening) if more else found

    def opening(
        self, context: TurnContext | None = None, *, host: str | None = None, folder: str | None = None
    ) -> Opening | None:
        """Return the opening of a session, once: again only after a compaction or a change of project.

        A host that takes the opening with each turn and keeps no blocks gets the same bytes every time.

        Args:
            context: of the session; None: a preview for the caller of the memory.
            host: preview what this host would get, such as "claude-code".
            folder: preview for this folder, given the memory files that the host itself shows its model there.

        Returns:
            At most `opening_tokens` tokens: standing instructions, then what is needed most often without being
            asked for, and what falls on a day in the next three weeks. Also None if `auto_recall` is off, if
            others can read the chat, or if there is nothing to say. In a coding host, private memories are left out
            unless they were told there, are pinned, or `private_hosts` names the host.

        Raises:
            StoreError: the store cannot be read.
        """
        expect(context, TurnContext | None, _CONTEXT, "context")
        settings, look, context = self._engine.settings, context is None, context or self._context
        context = replace(context, host=host) if host else context
        context = part("hosts.command.events").beside_files(context, folder) if folder else context
        if context.trigger != "user" or not settings.recalls(context.trigger) or overheard(context, settings):
            return None
        again = context.takes_opening and not context.keeps_block
        found = self._engine.opening(context, again=again, look=look) if settings.opening_tokens else None
        refused = "" if context.takes_opening else self._engine.refused(context)
        if not refused:
            return found
        found = found or Opening("", placement=settings.recall_placement)
        tokens = found.tokens + estimate_tokens(refused)
        return replace(found, block=f"{found.block}\n{refused}".lstrip(), tokens=tokens)

    def foresee(self, prompt: str, context: TurnContext) -> None:
        """Prefetch: do the part of a recall that needs only the prompt, for a host that knows it before the turn."""
        _expect_turn(context, prompt)
        if self._engine.settings.recalls(context.trigger):
            self._engine.foresee(prompt, context)

    def after(self, messages: Messages, success: bool, context: TurnContext) -> int:
        """Accept a host's turn for capture and return as soon as it is on disk.

        Returns:
            The number of messages accepted: none of failed turns, or when `auto_capture` is off. Then the
            conversation is not recorded either. If any was, what was said is as safe on disk as the messages;
            else it is recorded in the background.

        Raises:
            InputError: it is a single string or message instead of a list of messages.
            StoreError: they could not be written.
        """
        _expect_turn(context)
        if not success or not self._engine.settings.heeds(context.trigger):
            return 0
        messages = vouched_for(_history(messages), context)
        self._engine.note_use(messages, context)
        if any(map(_is_of_tools, messages)):
            self.did(lambda: messages, context)
        if not self._engine.settings.auto_capture:
            return 0
        return self._engine.take_in(messages, context)

    def did(self, messages: Callable[[], Messages], context: TurnContext) -> None:
        """Record, in the background, what the agent did in a session: files, commands, failures and their fixes.

        It is stored in the context's project as the agent's note; not without a project, or in a headless turn.

        Args:
            messages: returns the session's messages, or the newest of them, with tool calls and their results;
                a result may say the `exit_code` of a command, any message the `branch` and the `cwd`.
            context: of the session.
        """
        _expect_turn(context)
        self._engine.note_work(messages, context)

    def before_tool(
        self, given: Mapping[str, Any], context: TurnContext, *, folder: str = "", began: str = "",
        lately: Callable[[], Messages] = tuple,
    ) -> Recall | None:  # fmt: skip
        """Return what fixed an earlier failure in this project related to what a tool is about to do; None: nothing.

        Related means: the command that failed, a file that was changed before it passed, or the error the session has
        just met; each once per session, and none unless the setting `agent_log` is `remind`.

        Args:
            given: the tool's input as the host has it: `command`, or `file_path` with what is written.
            context: of the session.
            folder: the agent's working directory, which relative paths start from.
            began: the folder where the session began.
            lately: returns the newest messages of the session, in the form `did` takes.

        Raises:
            StoreError: the store cannot be read in time.
        """
        _expect_turn(context)
        expect(given, Mapping, "the tool's input: names with their values", "given")
        return self._engine.before_tool(Act(given, folder, began, lately), context)

    def before_compaction(self, messages: Messages, context: TurnContext) -> int:
        """Capture what a host is about to drop from a conversation, as `after` does, and index all of it."""
        taken = self.after(messages, True, context)
        self._engine.compacted(context)
        if context.session_id:
            self._engine.files.ended(context.session_id)
        return taken

    def session_start(self, context: TurnContext) -> None:
        """Note that a conversation starts or resumes."""
        _expect_turn(context)
        self._engine.files.meet(context, audience_of(context))
        if context.session_id:
            self._engine.files.sync.begun(context.session_id)
            self._engine.end_moments(context, others=True)

    def session_end(self, context: TurnContext) -> None:
        """Note that a conversation ended, so that all of it can be found, and its transient memories expire."""
        _expect_turn(context)
        if context.session_id:
            self._engine.files.ended(context.session_id)
            self._engine.end_moments(context)
            self._engine.at_rest(context)

    def adopt(self) -> None:
        """Schedule the capture of what exited processes left in the inbox; call this regularly if there are many."""
        self._engine.recover()

    def looked(self, receipt: Receipt) -> None:
        """Store the receipt of a preview of a recall, which is not a turn, for `Memory.why`."""
        expect(receipt, Receipt, "a Receipt, as `recall` passes to receipt_to", "receipt")
        self._engine.receipts.keep_look(receipt, self._context)

    def past(
        self, limit: int = 50, *, before: float | None = None, marked: bool = False, fact_id: str | None = None
    ) -> Sequence[PastTurn]:
        """Return turns with a recall, newest first.

        Args:
            limit: maximum number of turns.
            before: only older ones, epoch seconds.
            marked: only those in which a memory is marked.
            fact_id: only those, among the newest `limit`, in which the memory with this full id came up.

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
        """Repeat a turn's recall with today's memories and model. Nothing is counted or stored.

        Raises:
            InputError: it is the opening of a session, which has no prompt.
            NotFoundError: there is no such turn.
        """
        from perdure.api import turn_history

        return turn_history.replay(self._engine, self._context, turn)

    def mark(self, turn: str, fact_id: str, wanted: bool | None) -> PastTurn:
        """Mark whether a memory should have come up in a turn, so that `perdure eval` checks it.

        Args:
            turn: the receipt's id, or the first eight digits of it.
            fact_id: of the memory, or the beginning of it.
            wanted: whether it should have come up; None: clear the mark.

        Returns:
            The turn, which is now kept regardless of its age, unless it is purged.

        Raises:
            InputError: it is the opening of a session, which has no prompt.
            NotFoundError, AmbiguousIdError: the turn or the memory is not there.
            StoreError: it could not be written.
        """
        from perdure.api import turn_history

        return turn_history.mark(self._engine, self._context, turn, fact_id, wanted)
