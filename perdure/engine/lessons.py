"""What a memory learns where it was missed: a part of the prompt becomes a trigger of it, on this machine alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from perdure.capture.used import used_in
from perdure.clock import Clock
from perdure.engine.audiences import audience_of
from perdure.engine.model import Model
from perdure.errors import InputError, ModelError
from perdure.hooks.types import Channel, Recall, TurnContext
from perdure.index.aiming import aimed
from perdure.index.vector_index import all_cosines
from perdure.recall.query import parts
from perdure.recall.session_state import Ended
from perdure.store import receipts, triggers
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.search import View, by_ids
from perdure.store.store import Store
from perdure.store.transaction import Author
from perdure.store.triggers import LONGEST, MOST, USE
from perdure.store.trust import SUPERSEDES
from perdure.text.clean import clip

KEPT: Final = 3
"""Triggers that a memory has learnt: the newest stay."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """Gives memories of a store triggers from its use. For the background."""

    store: Store
    model: Model  # of the store; without one, the worker makes the vectors later
    clock: Clock

    def searched(self, reply: str, turn: Ended, context: TurnContext) -> None:
        """Learn from what the agent had to search for in a turn and made use of."""
        said = [fact for fact in self._said(turn.searched, context) if fact.since < turn.began]
        self.learn(used_in(reply, [(fact.id, fact.text) for fact in said], turn.prompt), turn.prompt, context)

    def said_again(self, prompt: str, recall: Recall, home: Scope, context: TurnContext) -> None:
        """Learn from a prompt by which somebody says a memory again: it should have come up in the turn before."""
        for before in self.store.database.query(receipts.of_session, context.session_id, str(home), 0.0, 1):
            asked, seen = before.body.get("query", ""), before.body.get("candidates", ())
            shown = {each["id"] for each in seen if each["verdict"] == "injected"}
            said = self._said([item.id for item in recall.items if item.id not in shown], context)
            self.learn(used_in(prompt, [(fact.id, fact.text) for fact in said], asked), asked, context)

    def learn(self, fact_ids: Collection[str], prompt: str, context: TurnContext) -> None:
        """Note that memories mattered at a prompt and did not come up."""
        for fact_id in fact_ids if self.store.refusal is None else ():
            try:
                [text] = triggers.checked([self._part(fact_id, prompt)])
                vectors = aimed(self.model.embedder(), self.model.scale(), [text])
            except (InputError, ModelError):
                continue  # it says nothing, or what is said all day long
            with self.store.write(_author(context)) as tx:
                there = triggers.of(tx.connection, [fact_id]).get(fact_id, [])
                if text.casefold() not in {each.text.casefold() for each in there}:
                    learnt = [each.text for each in there if each.origin == USE]
                    room = min(KEPT, MOST - len(there) + len(learnt))
                    tx.learn_triggers(fact_id, [*learnt, text][-room:] if room else [], vectors)

    def unlearn(self, fact_id: str, prompt: str, context: TurnContext) -> None:
        """Take back that a memory mattered at a prompt."""
        with self.store.write(_author(context)) as tx:
            there = [each for each in triggers.of(tx.connection, [fact_id]).get(fact_id, []) if each.origin == USE]
            said = self._part(fact_id, prompt).casefold()
            if said in {each.text.casefold() for each in there}:
                tx.learn_triggers(fact_id, [each.text for each in there if each.text.casefold() != said])

    def _said(self, fact_ids: Collection[str], context: TurnContext) -> list[Fact]:
        """Return those of memories that the user said: of others a page could have the model speak."""
        view = View(audience_of(context), self.clock.now(), channels=SUPERSEDES, approved_only=True)
        return list(self.store.database.query(by_ids, list(fact_ids), view).values()) if fact_ids else []

    def _part(self, fact_id: str, prompt: str) -> str:
        """Return a prompt, or of a long one the part that is nearest to a memory; without a model the last."""
        whole, embedder = " ".join(prompt.split()), self.model.embedder()
        if len(whole) <= LONGEST:
            return whole
        found = [clip(part, LONGEST) for part in parts(whole)] or [clip(whole, LONGEST)]
        if embedder is not None and len(found) > 1:
            queries = embedder.embed(found, query=True)
            if near := all_cosines(self.store.database, queries, [fact_id], embedder.identity.id).get(fact_id):
                return found[near.index(max(near))]
        return found[-1]


def _author(context: TurnContext) -> Author:
    return Author(Channel.USER, context.host, context.session_id)
