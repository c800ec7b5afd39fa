"""Kills a process that writes, at random moments and at every fail point, and checks what is left.

python -m bench crash --kills 200 --json

All that the process had acknowledged must be there, once and in its state; what it was doing when it died must be
done or not done; words, vectors and the LanceDB table must say what the facts say.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from filelock import FileLock

from bench.kills import ABSENT, FORGOTTEN, LIVE, MARKER, PARKED, SUPERSEDED, Child, Story, Verdict, divergence
from bench.memories import say
from bench.program import program
from perdure.api.memory import Memory
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.engine import Engine
from perdure.engine.settings import Settings
from perdure.engine.work import work
from perdure.errors import NotFoundError
from perdure.failpoints import EXIT_CODE, FAIL_POINTS, VARIABLE
from perdure.hooks.types import Channel, TurnContext
from perdure.maintenance.importing import Incoming, Load, bring_in
from perdure.maintenance.purge import certify, purge
from perdure.store import lifecycle
from perdure.store.fact import CATEGORIES, Fact
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author, StoredVector

SETTINGS: dict[str, Any] = {"embedder": "hash", "vector_index": "lance", "index": {"vectors": 5}, "timers": False}
"""Without timers: the canary's fact has no marker."""
AUTHOR = Author(Channel.LIBRARY)
OPERATIONS = 70
INDEX_EVERY = 30
ANIMALS = ("heron", "badger", "otter", "lynx", "marten", "plover")
ROUNDS_PER_HOME = 12
PATIENCE = 90.0
FIRST_START = frozenset({"migrate.begun", "migrate.stepped", "migrate.committed", "lance.creating"})
"""Fail points that only a new store passes, once."""
_ONCE = (
    "worker.", "lance.", "inbox.emptied", "inbox.kept_aside", "inbox.adopted", "inbox.removed", "drain.",
    "indexer.embedded",
)  # fmt: skip
"""Beginnings of fail points that are passed so seldom that the first time must do."""


def play(home: str, seed: int, index: bool) -> None:
    """Change the store for ever; with `index` until the work is done, the worker's work now and then among it."""
    os.environ.pop(VARIABLE, None)  # it is meant for this process, not for its worker
    actor = Actor(Path(home), Settings.load(SETTINGS, environ={}), random.Random(seed), f"{os.getpid():x}", _to_parent)
    actor.leave_behind()
    actor.open()
    number = 0
    while not index or number < OPERATIONS:
        number += 1
        actor.step()
        if index and number % INDEX_EVERY == 0:
            actor.index()
    actor.close()


def bring_up(home: Path, settings: Settings) -> None:
    """Do what a worker process does, in this one: under the lock that keeps workers apart."""
    with FileLock(home / "worker.lock", mode=0o600):
        work(home, settings, threading.Event(), idle_seconds=0)


class Actor:
    """Makes changes and tells of them."""

    def __init__(
        self, home: Path, settings: Settings, chance: random.Random, name: str, tell: Callable[[str], None]
    ) -> None:
        """Prepare to do what chance says; `name` is hexadecimal, `tell` hears a line before and after each change."""
        self._tell = tell
        self._home = home
        self._settings = settings
        self._chance = chance
        self._name = name
        self._count = 0
        self._live: dict[str, str] = {}
        self._forgotten: dict[str, str] = {}
        self._ways: tuple[Callable[[], None], ...] = (
            self.store, self.store, self.say_again, self.batch, self.supersede, self.update, self.forget,
            self.unforget, self.sort, self.fail, self.take_in, self.purge, self.remember,
        )  # fmt: skip
        self._turns = (self.capture, self.capture, self.quiet, self.certify)

    def leave_behind(self) -> None:
        """Leave turns in the inbox as a process does that ends before they are captured.

        One of them is poisoned, and one, which tells of no marker, is damaged afterwards.
        """
        store = Store(self._home)
        for messages in ([{"at": 1.0}], None):
            marker, text = self._words()
            with self._told({marker: LIVE if messages else PARKED}):
                store.inbox.append({
                    "at": store.clock.now(), "session": self._name, "cursor": f"user:owner\0{marker}", "tail": "",
                    "scope": "user:owner", "host": "bench", "turn": None,
                    "messages": [{**messages[0], "text": text}] if messages else marker,
                })  # fmt: skip
        damaged = store.inbox.append({"messages": "a heron"})
        store.close()
        path = self._home / "inbox" / f"{damaged['id'].partition(':')[0]}.jsonl"
        path.write_bytes(path.read_bytes().replace(b"a heron", b"a hern"))

    def open(self) -> None:
        """Open the memory; what was left behind is captured meanwhile."""
        self._engine = Engine(self._home, self._settings)
        self._memory = Memory(self._engine, TurnContext(host="bench"))
        self._memory.ready()
        self._memory.settle()
        with self._engine.store.database.read() as connection:
            rows = run(connection, "SELECT id, text, forgotten_at FROM facts WHERE superseded_at IS NULL")
        for fact_id, text, forgotten_at in rows:
            [marker] = MARKER.findall(text)
            (self._forgotten if forgotten_at else self._live)[marker] = fact_id

    def step(self, *, turns: bool = True) -> None:
        """Do one thing; without `turns` none that goes through the inbox."""
        self._chance.choice((*self._ways, *self._turns) if turns else self._ways)()

    def close(self) -> None:
        """End in order."""
        self._memory.settle()
        self._memory.close()

    def index(self) -> None:
        """Do the worker's work here."""
        bring_up(self._home, self._settings)

    def store(self) -> None:
        """Store a fact."""
        marker, text = self._words()
        with self._told({marker: LIVE}):
            self._live[marker] = self._memory.store(text).id

    def say_again(self) -> None:
        """Store what is there already."""
        marker = self._any(self._live)
        with self._told({marker: LIVE}):
            self._memory.store(self._memory.get(self._live[marker]).text)

    def batch(self) -> None:
        """Store several facts at once, some without a vector."""
        words = [self._words() for _ in range(5)]
        with self._told({marker: LIVE for marker, _ in words}), self._engine.store.write(AUTHOR) as tx:
            for number, (marker, text) in enumerate(words):
                self._live[marker] = tx.add(self._fact(text), _vector(text) if number % 2 else None).id

    def supersede(self) -> None:
        """Let a new fact take the place of an old one."""
        old = self._any(self._live)
        marker, text = self._words()
        with self._told({old: SUPERSEDED, marker: LIVE}), self._engine.store.write(AUTHOR) as tx:
            new = tx.add(self._fact(text), _vector(text))
            tx.supersede(self._live.pop(old), new.id)
        self._live[marker] = new.id

    def update(self) -> None:
        """Give a fact new words."""
        old = self._any(self._live)
        marker, text = self._words()
        with self._told({old: SUPERSEDED, marker: LIVE}), self._engine.store.write(AUTHOR) as tx:
            new = lifecycle.update(tx, self._live.pop(old), {"text": text}, _vector(text))
        self._live[marker] = new.id

    def sort(self) -> None:
        """Put a fact into another category, which is in the word index too."""
        marker = self._any(self._live)
        with self._told({marker: LIVE}), self._engine.store.write(AUTHOR) as tx:
            lifecycle.update(tx, self._live[marker], {"category": self._chance.choice(CATEGORIES)})

    def forget(self) -> None:
        """Forget a fact."""
        marker = self._any(self._live)
        with self._told({marker: FORGOTTEN}), self._engine.store.write(AUTHOR) as tx:
            lifecycle.forget(tx, self._live[marker])
        self._forgotten[marker] = self._live.pop(marker)

    def unforget(self) -> None:
        """Bring a forgotten fact back."""
        if not self._forgotten:
            self.forget()
        marker = self._any(self._forgotten)
        with self._told({marker: LIVE}), self._engine.store.write(AUTHOR) as tx:
            lifecycle.unforget(tx, self._forgotten[marker])
        self._live[marker] = self._forgotten.pop(marker)

    def take_in(self) -> None:
        """Import facts."""
        words = dict(self._words() for _ in range(3))
        facts = {marker: replace(self._fact(text), id=str(uuid.uuid4())) for marker, text in words.items()}
        incoming = [Incoming(fact, _vector(fact.text)) for fact in facts.values()]
        with self._told(dict.fromkeys(words, LIVE)):
            bring_in(self._engine.store, Load("perdure", len(facts), lambda: incoming, lambda: (), sealed=True))
        self._live |= {marker: fact.id for marker, fact in facts.items()}

    def purge(self) -> None:
        """Remove a fact for good."""
        marker = self._any(self._live)
        with self._told({marker: ABSENT}):
            purge(self._engine.store, [self._live.pop(marker)], AUTHOR)

    def certify(self) -> None:
        """Bring purges to their end, if nobody else has the store open."""
        certify(self._engine.store)

    def remember(self) -> None:
        """Write down outside facts.db where the store is."""
        self._engine.store.remember(at_once=True)

    def fail(self) -> None:
        """Break a transaction off: nothing of it may stay."""
        marker, text = self._words()
        try:
            with self._engine.store.write(AUTHOR) as tx:
                tx.supersede("no such fact", tx.add(self._fact(text)).id)
        except NotFoundError:
            return
        raise AssertionError(f"{marker}: a fact that is not there was superseded")

    def capture(self) -> None:
        """End a turn."""
        marker, text = self._words()
        with self._told({marker: LIVE}):
            say(self._memory, text, f"{self._name}-{self._count}")

    def quiet(self) -> None:
        """Do what a quiet moment is for."""
        self._memory.settle()
        self._engine.store.inbox.empty()

    def _words(self) -> tuple[str, str]:
        self._count += 1
        marker = f"mk{self._name}q{self._count}"
        return marker, f"Please remember that marker {marker} stands for the {self._chance.choice(ANIMALS)} database."

    def _fact(self, text: str) -> Fact:
        return Fact(text, channel=Channel.LIBRARY, scope="user", scope_target="owner")

    def _any(self, markers: Mapping[str, str]) -> str:
        if not markers:
            self.store()
        return self._chance.choice(sorted(markers))

    @contextmanager
    def _told(self, change: Mapping[str, str]) -> Iterator[None]:
        self._tell(json.dumps(change))
        yield
        self._tell(".")


def _to_parent(line: str) -> None:
    os.write(1, line.encode() + b"\n")


def _vector(text: str) -> StoredVector:
    embedder = HashEmbedder()
    return StoredVector(embedder.identity.id, embedder.embed([text])[0].astype("<f4").tobytes())


def killed_at_random(story: Story, seed: int, chance: random.Random) -> int:
    """Let a process work and kill it; return how many acknowledgements there were."""
    child = Child(play, story.home, seed, chance.random() < 0.3, hear=story.hear)
    delay = chance.uniform(0.05, 1.5)
    child.begun.wait()
    time.sleep(delay)
    child.bury()
    return child.acknowledged


def killed_at(story: Story, seed: int, fail_point: str) -> tuple[int, bool]:
    """Let a process work until it reaches a fail point; return its acknowledgements and whether it got there."""
    child = Child(play, story.home, seed, True, hear=story.hear, fail_point=fail_point)
    try:
        code = child.wait(PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the child did not end on its way to {fail_point}") from error
    finally:
        child.bury()  # its worker
    if code not in (0, EXIT_CODE):
        raise RuntimeError(f"the child ended with {code} on its way to {fail_point}")
    return child.acknowledged, code == EXIT_CODE


def check(story: Story) -> Verdict:
    """Open the store again, let it recover, and compare it with the story."""
    with Memory.open(story.home, **SETTINGS) as memory:
        memory.ready()
        memory.settle()
    bring_up(story.home, Settings.load(SETTINGS, environ={}))
    verdict = Verdict(diverged=divergence(story.home))
    verdict.add(story.compare())
    return verdict


def plan(kills: int, chance: random.Random) -> list[str | None]:
    """Return the fail points to die at, in turn; None: at a random moment. About half and half."""
    points: list[str | None] = [*sorted(FAIL_POINTS)]
    chance.shuffle(points)
    repeats = max(1, kills // 2 // len(points))
    chosen = (points * repeats)[:kills]
    chosen += [None] * (kills - len(chosen))
    chance.shuffle(chosen)
    return chosen


@click.option("--kills", default=200)
@click.option("--seed", default=1)
@click.option("--trace", is_flag=True, help="Tell about each kill on stderr.")
def bench(kills: int, seed: int, trace: bool = False) -> dict[str, Any]:
    """Kill a writing process again and again, and check; return the sums."""
    chance = random.Random(seed)
    total = Verdict()
    acknowledged, hit, missed = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder) / "0")
        for number, point in enumerate(plan(kills, chance)):
            if number % ROUNDS_PER_HOME == 0 or point in FIRST_START:
                story = Story(Path(folder) / str(number))
            if point is None:
                acknowledged += killed_at_random(story, number, chance)
            else:
                count = 1 if point in FIRST_START or point.startswith(_ONCE) else chance.randint(1, 12)
                heard, reached = killed_at(story, number, f"{point}:{count}")
                if not reached:
                    again, reached = killed_at(story, number, f"{point}:1")
                    heard += again
                acknowledged += heard
                (hit if reached else missed)[point] += 1
            verdict = check(story)
            total.add(verdict)
            if trace:
                click.echo(
                    f"{number + 1}/{kills} {point or 'random'}: {acknowledged} acknowledged, {verdict}", err=True
                )
    return {
        "kills": kills,
        "acknowledged": acknowledged,
        "fail_points_hit": len(hit),
        "fail_points_known": len(FAIL_POINTS),
        "fail_points_missed": sorted(missed.keys() - hit.keys()),
        **total.figures(),
        "problems": total.problems[:20],
    }


main = program(bench, failed=lambda found: found["lost"] or found["duplicated"] or found["diverged"])
