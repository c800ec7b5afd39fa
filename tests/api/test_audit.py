"""An audit proposes what it can prove, never what must not be lost, and what goes can be taken back."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from perdure.api.audit import Audit
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, TurnContext
from perdure.ranking.decay import DAY
from perdure.store.fact import Fact
from perdure.store.transaction import Author
from tests.kit import OpenHost, OpenMemory, for_each

TEA = "I like strong tea in the morning."


def put(memory: Memory, text: str, **values: Any) -> str:
    """Write a fact as capture may have left it, past all checks."""
    usual = {"channel": Channel.USER, "scope": "user", "scope_target": "owner", "extraction_method": "rule:factual"}
    with memory._engine.store.write(Author(Channel.USER)) as tx:
        return tx.add(Fact(text, **{**usual, **values})).id


@contextmanager
def alone(**settings: Any) -> Iterator[Memory]:
    """Open a memory in a folder of its own."""
    with tempfile.TemporaryDirectory() as home, Memory.open(home, embedder="none", timers=False, **settings) as memory:
        yield memory


def kinds(found: Audit) -> dict[str, str]:
    return {each.id: each.kind for each in found.suspects}


@pytest.fixture
def memory(open_memory: OpenMemory) -> Memory:
    return open_memory(embedder="none")


def test_a_store_in_order_has_no_suspects(memory: Memory) -> None:
    for text in ("I live in Graz.", "My sister Ann likes tea.", "We decided to use Postgres because of its types."):
        memory.store(text)
    memory.turns.after([{"role": "user", "content": "My dog is called Fido."}], True, TurnContext(session_id="s"))
    memory.settle()
    found = memory.admin.audit(fix=True)
    assert (found.facts, found.suspects, found.fixed, found.batch) == (4, (), 0, None)


def test_nothing_of_a_familys_conversations_may_go(
    open_host: OpenHost, open_memory: OpenMemory, clock: ManualClock
) -> None:
    host, memory = open_host(open_memory(embedder="none"))
    for said in (
        "My son Jonah turns 7 on the 21st of November and wants a party.\nOh and he's coeliac so no normal cake",
        "Jonah's birthday is on Saturday, and he wants a Minecraft party now. He is coeliac, what cake could I bake?",
        "My new phone number is 07700 900999. I hate phone calls.\nMy son Jonah turns 7 on the 21st of November.",
    ):
        host.turn(said, "Noted.")
        assert memory.settle()
        clock.advance(3 * DAY)
    # As they stood there.
    put(memory, "Oh and he's coeliac so no normal cake (after: My son Jonah turns 7 ...)", provenance_session="s")
    put(memory, "My son Jonah turns 7 on the 21st of November.", provenance_session="s")
    for later in (0, 30, 400):
        clock.advance(later * DAY)
        assert memory.admin.audit(fix=True).suspects == ()


NEVER = (
    "Oh and he's coeliac so no normal cake.", "I am allergic to penicillin.", "I take sertraline in the morning.",
    "Ich bin Diabetiker.", "Je suis allergique aux noix.", "Soy celíaca.", "Sou alérgica a amendoim.", "Sono incinta.",
    "My sister lives in Bergen.", "Meine Tochter wohnt in Graz.", "Ma fille habite à Lyon.", "Mi hijo vive en Madrid.",
    "Tom's birthday is in spring.", "Ada was born in Riga.", "The fair in Riga is on 20 January.", "I fly on 3 May.",
    "Always answer in French.", "Never push to main.", "Please keep the answers short.", "I prefer tabs to spaces.",
    "The staging database is called heron.", "My name is Mira.", "Ich heiße Jonas.", "Call me Jo.",
)  # fmt: skip


def test_what_must_not_be_lost_is_never_proposed(memory: Memory, clock: ManualClock) -> None:
    for text in NEVER:
        put(memory, text, provenance_session="s")
        put(memory, text)
        if not any(map(str.isdigit, text)):
            put(memory, f"{text[:-1]} until tomorrow.", source_date=clock.now())
    # That a day is over is no reason to lose what else is said of it.
    for text in NEVER:
        if not any(map(str.isdigit, text)):
            put(memory, text, valid_until=clock.now())
    clock.advance(9 * DAY)
    assert [each.text for each in memory.admin.audit(fix=True).suspects] == []


@for_each("values", [{"extraction_method": "rule:remember"}, {"channel": Channel.LIBRARY}, {"pinned": True}])
def test_what_was_asked_to_be_remembered_is_not_over_and_no_echo(values: dict[str, Any]) -> None:
    with alone() as memory:
        put(memory, "I'm in Lisbon until 3 May 2001.", source_date=980_000_000.0, **values)
        assert memory.admin.audit().suspects == ()


def test_the_lesser_of_two_that_say_the_same_goes_and_comes_back(memory: Memory) -> None:
    first = put(memory, TEA)
    pinned = memory.pin(put(memory, TEA.rstrip(".") + "!")).id
    found = memory.admin.audit()
    assert kinds(found) == {first: "duplicate"}
    assert found.suspects[0].other_id == pinned
    assert memory.admin.has(first)  # without a word nothing is changed
    assert memory.admin.audit(fix=[pinned]).fixed == 0
    mended = memory.admin.audit(fix=[first])
    assert (mended.fixed, memory.admin.has(first), memory.admin.has(pinned)) == (1, False, True)
    memory.undo(mended.batch)
    assert memory.admin.has(first)


@for_each(("one", "other"), [
    (TEA, "You like strong tea in the morning."), (TEA, "I liked strong tea in the morning."),
    ("The train goes from Graz to Linz.", "The train goes from Linz to Graz."),
    ("I am tired today.", "I am tired today."), (TEA, "I like strong tea in the morning, and toast."),
    ("We use Postgres here.", "We don't use Postgres here."),
])  # fmt: skip
def test_what_says_something_else_stays(one: str, other: str) -> None:
    with alone() as memory:
        put(memory, one)
        put(memory, other)
        assert memory.admin.audit().suspects == ()


def test_of_two_values_of_a_slot_none_goes(memory: Memory, clock: ManualClock) -> None:
    slot = {"entity": "user", "key": "location"}
    put(memory, "I live in Graz.", value="Graz", **slot)
    clock.advance(DAY)
    put(memory, "I live in Linz.", value="Linz", **slot)
    assert memory.admin.audit().suspects == ()


def test_the_users_word_does_not_go_for_the_agents(memory: Memory) -> None:
    put(memory, TEA)
    agents = put(memory, TEA, channel=Channel.TOOL_UNASKED)
    assert kinds(memory.admin.audit()) == {agents: "duplicate"}
    waits = put(memory, "I like green tea in the evening.", review_state="pending")
    put(memory, "I like green tea in the evening.", channel=Channel.TOOL_UNASKED)
    assert waits not in kinds(memory.admin.audit())


SHOWN = "The ledger's nightly batch runs on the small machine in the cellar."


@for_each(("said", "echo"), [
    ("Nightly batch of the ledger runs on the small machine in the cellar!", False),
    ("Ledger's nightly batch runs on the small machine in the cellar!", True),
    ("The ledger's nightly batch runs on the big machine in the cellar.", False),
    ("The ledger's nightly batch ran on the small machine in the cellar.", False),
])  # fmt: skip
def test_an_echo_says_the_same_as_its_conversation_had_been_shown(said: str, echo: bool) -> None:
    clock = ManualClock()
    with alone(clock=clock) as memory:
        shown = put(memory, SHOWN)
        clock.advance(60.0)
        assert memory.turns.before("Where does the nightly batch of the ledger run?", TurnContext(session_id="s"))
        memory.settle()
        clock.advance(60.0)
        new = put(memory, said, provenance_session="s")
        found = memory.admin.audit().suspects
    assert [(each.id, each.kind, each.other_id) for each in found] == [(new, "echo", shown)] * echo


def test_what_says_of_itself_that_it_ends_may_go_once_it_has(memory: Memory, clock: ManualClock) -> None:
    lisbon = put(memory, "I'm in Lisbon until December.", source_date=clock.now())
    porto = put(memory, "The office is in Porto.", valid_until=clock.now() + DAY)
    put(memory, "I wanted to be in Lisbon until December.", source_date=clock.now())
    assert memory.admin.audit().suspects == ()
    clock.advance(370 * DAY)
    found = memory.admin.audit()
    assert kinds(found) == {lisbon: "past", porto: "past"}
    assert "until December" in found.suspects[0].evidence
    assert memory.admin.audit(fix=True).fixed == 2


def test_progress_ends_with_all_of_them(memory: Memory) -> None:
    for number in range(3):
        memory.store(f"House {number} is green.")
    steps: list[tuple[int, int]] = []
    memory.admin.audit(progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (3, 3)
