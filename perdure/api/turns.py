"""What a host tells of its turns, and what it gets for them."""

from __future__ import annotations

from dataclasses import replace

from perdure.api.files import Files
from perdure.engine.engine import Engine, audience_of, overheard
from perdure.engine.llm import in_turn
from perdure.hooks.types import Messages, Recall, TurnContext
from perdure.recall.pipeline import Asked


class Turns:
    """The turns of a host. Obtained as `Memory.turns`; each call names its own caller in the context."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def before(self, prompt: str, context: TurnContext) -> Recall | None:
        """Recall for a host's turn; see `Recall`. None also when `auto_recall` is off, or where others listen."""
        self._engine.files.meet(context, audience_of(context))
        settings, found = self._engine.settings, None
        if settings.auto_recall and not overheard(context, settings) and context.trigger == "user":
            found = self._engine.recall(prompt, context, Asked(expand=in_turn(settings)))
        sections = Files(self._engine, context).prompt_sections(context.prompt_mode)
        return replace(found or Recall(""), sections=sections) if sections else found

    def foresee(self, prompt: str, context: TurnContext) -> None:
        """Do what of a recall the prompt alone decides, for a host that has the prompt some time before its turn."""
        if self._engine.settings.auto_recall and context.trigger == "user":
            self._engine.foresee(prompt, context)

    def after(self, messages: Messages, success: bool, context: TurnContext) -> int:
        """Take in a host's turn and return as soon as it is on disk.

        Returns:
            How many messages were taken in: none of failed turns, or when `auto_capture` is off. Then the
            conversation is not recorded either. If any was, what was said is as safe on disk as the messages;
            else it is recorded in the background.

        Raises:
            StoreError: they could not be written.
        """
        if not success or context.trigger != "user":
            return 0
        self._engine.note_use(messages, context)
        if not self._engine.settings.auto_capture:
            return 0
        return self._engine.capture(messages, context)

    def before_compaction(self, messages: Messages, context: TurnContext) -> int:
        """Take in what a host is about to drop from a conversation, as `after` does, and index all of it."""
        taken = self.after(messages, True, context)
        self._engine.compacted(context)
        self.session_end(context)
        return taken

    def session_start(self, context: TurnContext) -> None:
        """Take note that a conversation begins or goes on."""
        self._engine.files.meet(context, audience_of(context))
        if context.session_id:
            self._engine.files.sync.begun(context.session_id)

    def session_end(self, context: TurnContext) -> None:
        """Take note that a conversation is over, so that all of it can be found."""
        if context.session_id:
            self._engine.files.ended(context.session_id)

    def adopt(self) -> None:
        """Take in, soon, what processes that have ended left in the inbox: a host with many calls this now and then."""
        self._engine.recover()
