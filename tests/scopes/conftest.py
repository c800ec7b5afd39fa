"""One store in which each of ten scopes has a canary, with its nest, and callers who see one part of it each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.engine.audiences import OwnersContext
from perdure.engine.engine import Engine
from perdure.engine.settings import Settings
from perdure.files import registry
from perdure.hooks.types import Channel, TurnContext
from perdure.store import links, triggers
from perdure.store.fact import Fact
from perdure.store.scope import Scope
from perdure.store.store import Store
from perdure.store.transaction import Author

START = 1_800_000_000.0
SCOPES = tuple(
    Scope.parse(text)
    for text in (
        "global", "user:owner", "user:eva", "user:max", "agent:ann", "agent:bob user:eva", "session:s1 user:max",
        "session:s2 agent:bob user:eva", "project:harbour", "agent:bob user:*",
    )
)  # fmt: skip
Callers = Mapping[str, tuple[TurnContext, tuple[str, ...]]]
CALLERS: Callers = {
    "owner": (TurnContext(), ("global", "user:owner")),
    "eva": (TurnContext(user_id="eva"), ("global", "user:eva")),
    "max in a session": (TurnContext(user_id="max", session_id="s1"), ("global", "user:max", "session:s1 user:max")),
    "ann": (TurnContext(agent_id="ann"), ("global", "user:owner", "agent:ann")),
    "bob for eva": (
        TurnContext(agent_id="bob", user_id="eva", session_id="s2"),
        ("global", "user:eva", "agent:bob user:eva", "agent:bob user:*", "session:s2 agent:bob user:eva"),
    ),
    "bob for max": (
        TurnContext(agent_id="bob", user_id="max", session_id="s2"),
        ("global", "user:max", "agent:bob user:*"),
    ),
    "the owner's own tools": (
        OwnersContext(),
        ("global", "user:owner", "agent:ann", "project:harbour", "agent:bob user:*"),
    ),
    "a stranger": (TurnContext(user_id="stranger"), ("global",)),
    "no agent": (TurnContext(agent_id=""), ("global",)),
    "a malformed user": (TurnContext(user_id="eva "), ("global",)),
}
"""Each caller with the scopes that it may read."""


ENDINGS = [letter * 4 for letter in ascii_lowercase] + [f"{a}{b}{a}{b}" for a, b in permutations(ascii_lowercase, 2)]
"""Of words that are not in each other."""


@dataclass(frozen=True)
class Canary:
    """A fact that only those who may read its scope may ever hear of.

    Attributes:
        scope: whose it is.
        word: stands in its text and in no other.
        facts: the ids of the fact and of its former version.
        nest: a workspace of its scope, whose MEMORY.md has its word.
    """

    scope: Scope
    word: str
    entity: str
    tag: str
    facts: tuple[str, ...]
    nest: Path = Path("/nowhere")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What gives it away, in lower case: its word, its nest, and the beginning of each of its ids."""
        return (self.word, str(self.nest).lower(), *(fact_id[:8] for fact_id in self.facts))

    @property
    def session(self) -> str:
        """The conversation in which it was talked of."""
        return f"talk-of-{self.word}"


class House:
    """The store, its canaries, and a memory for each caller."""

    def __init__(
        self, home: Path, *, scopes: tuple[Scope, ...] = SCOPES, callers: Callers = CALLERS, **settings: Any
    ) -> None:
        self.callers = callers
        self.clock = ManualClock()
        # By words alone, unless an embedder is named. No timers: what conftest sets holds for no fixture of a module,
        # and a job that gives categories would write beside what is tested.
        given = {"embedder": "none", "watch": False, "timers": False, **settings}
        self.engine = Engine(home, Settings.load(given), clock=self.clock)
        self.engine.model.wait(30.0)
        self.canaries = [self._canary(number, scope) for number, scope in enumerate(scopes)]
        self._link(self.engine.store)
        for canary in self.canaries:
            self._nest(canary)
        owner = Memory(self.engine, TurnContext())
        owner.files.sync()
        owner.files.embed()
        self.clock.set(START + 3600.0)

    def caller(self, name: str) -> Memory:
        """Return a memory of a caller; all share one engine, as the agents of one host do."""
        return Memory(self.engine, self.callers[name][0])

    def hidden_from(self, name: str) -> list[Canary]:
        """Return the canaries that a caller must never hear of."""
        return [canary for canary in self.canaries if str(canary.scope) not in self.callers[name][1]]

    def close(self) -> None:
        self.engine.close()

    def _canary(self, number: int, scope: Scope) -> Canary:
        word = f"canary{ENDINGS[number]}"
        entity, tag = f"Cage{number}", f"tag{number}"
        draft = Fact(
            f"The {word} sings in the harbour at night.", why=f"{word} was asked to", entity=entity, key="alias",
            value=word, tags=(tag, "bird"), preserve_tags=True, summary=f"{word} sings.", metadata={"bird": word},
            channel=Channel.LIBRARY, scope=scope.kind, scope_target=scope.target,
        )  # fmt: skip
        ids = []
        for step, fact in enumerate((replace(draft, text=f"The {word} sang in the harbour."), draft)):
            self.clock.set(START + 100 * number + step)
            [prepared] = self.engine.writer.prepare([fact], self.clock.now())
            with self.engine.store.write(Author(Channel.LIBRARY, session=f"of-{word}")) as tx:
                ids.append(tx.add(prepared.fact, prepared.vector).id)
                tx.put_triggers(ids[-1], [f"who nests beside the {word}"], triggers.USER)
        with self.engine.store.write(Author(Channel.LIBRARY)) as tx:
            tx.supersede(ids[0], ids[1])
        failed = {"scope": str(scope), "messages": [{"text": f"The {word} said nothing that could be captured."}]}
        self.engine.store.park(f"turn-of-{word}", "ValueError", json.dumps(failed))
        home = self.engine.store.folder
        return Canary(scope, word, entity, tag, tuple(ids), home.with_name(f"{home.name}-nest{number:02}"))

    def _nest(self, canary: Canary) -> None:
        files, store = self.engine.files, self.engine.store
        canary.nest.mkdir()
        (canary.nest / "MEMORY.md").write_text(f"The {canary.word} nests in the old willow.\n")
        registry.add_root(store, canary.scope, canary.nest, "workspace")
        said = [{"role": "user", "content": f"Yesterday the {canary.word} sat on the old bridge."}]
        files.log.append(canary.scope, canary.session, said, START)
        registry.add_log(store, canary.scope)

    def _link(self, store: Store) -> None:
        """Link all canaries to the first, and each to the next: what a broken older version may have left behind."""
        with store.write(Author(Channel.LIBRARY)) as tx:
            for one, other in zip(self.canaries, self.canaries[1:], strict=False):
                links.link(tx, one.facts[1], other.facts[1], "RELATED_TO")
            for other in self.canaries[2:]:
                links.link(tx, other.facts[1], self.canaries[0].facts[1], "PART_OF")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("house") / "home")
    yield house
    house.close()


@pytest.fixture(scope="module")
def embedded_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The same with vectors, in which any text is near to some other."""
    house = House(tmp_path_factory.mktemp("embedded") / "home", embedder="hash")
    yield house
    house.close()
