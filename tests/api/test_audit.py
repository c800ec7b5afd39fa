"""An audit finds what does harm, says why, and mends it so that all of it can be taken back."""

from __future__ import annotations

import pytest

from perdure.api.audit import Audit
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel, TurnContext
from perdure.ranking.decay import DAY
from perdure.store.fact import Fact
from perdure.store.transaction import Author
from tests.kit import OpenMemory

TOKEN = "ghp_abcdefghij0123456789abcdefghij012345"


def put(memory: Memory, text: str, **values: object) -> str:
    """Write a fact as an older version may have left it, past all checks."""
    fact = Fact(text, channel=Channel.USER, scope="user", scope_target="owner", **values)  # type: ignore[arg-type]
    with memory._engine.store.write(Author(Channel.USER)) as tx:
        added = tx.add(fact)
        return added.id


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


def test_the_lesser_of_two_that_say_the_same_goes(memory: Memory) -> None:
    first = put(memory, "You like strong tea in the morning.")
    pinned = memory.pin(put(memory, "I like strong tea in the morning")).id
    found = memory.admin.audit()
    assert kinds(found) == {first: "duplicate"}
    assert found.suspects[0].other_id == pinned
    assert memory.has(first)  # without a word nothing is changed


def test_what_the_rules_would_not_keep_is_junk_unless_it_was_stored_on_purpose(memory: Memory) -> None:
    junk = put(memory, "Can you rerun the tests, please?", extraction_method="rule:factual")
    put(memory, "Can you rerun the tests?")
    assert kinds(memory.admin.audit()) == {junk: "junk"}


def test_a_secret_is_told_by_its_kind_alone(memory: Memory) -> None:
    harmless = put(memory, "The deploy token is in the safe of the office.")
    with memory._engine.store.database.write() as connection:
        connection.execute("UPDATE facts SET text = ? WHERE id = ?", (f"The deploy token is {TOKEN} now.", harmless))
    found = memory.admin.audit()
    assert kinds(found) == {harmless: "secret"}
    assert TOKEN not in repr(found)
    assert "perdure purge" in found.suspects[0].evidence


def test_what_repeats_what_its_conversation_was_shown_is_an_echo(memory: Memory, clock: ManualClock) -> None:
    shown = memory.store("The staging database of the ledger is called heron.").id
    context = TurnContext(session_id="s")
    assert memory.turns.before("What is the staging database of the ledger called?", context) is not None
    memory.settle()
    clock.advance(60.0)
    same = put(
        memory,
        "Staging database of the ledger: called heron!",
        provenance_session="s",
        extraction_method="rule:factual",
    )
    found = memory.admin.audit()
    assert kinds(found)[same] == "echo"
    assert next(each for each in found.suspects if each.id == same).other_id == shown
    assert shown not in kinds(found)


def test_the_past_that_nobody_asks_for_is_stale(memory: Memory, clock: ManualClock) -> None:
    past = clock.now() + 5 * DAY
    old = put(memory, "The fair in Riga is on 20 January.", decay_freeze_until=past, decay_class="permanent")
    clock.advance(200 * DAY)
    put(memory, "The next fair in Riga is on 20 August.", decay_freeze_until=clock.now() + DAY, decay_class="permanent")
    assert kinds(memory.admin.audit()) == {old: "stale"}


def test_the_newer_of_two_values_stands_and_everything_can_be_taken_back(memory: Memory, clock: ManualClock) -> None:
    slot = {"entity": "user", "key": "location"}
    older = put(memory, "I live in Graz.", value="Graz", **slot)
    clock.advance(DAY)
    newer = put(memory, "I live in Linz.", value="Linz", **slot)
    dup = put(memory, "I live in Linz!", value="Linz", **slot)
    found = memory.admin.audit(fix=True)
    assert sorted(kinds(found).values()) == ["contradiction", "duplicate"]
    assert found.fixed == 2
    assert [fact.value for fact in memory.lookup("user", "location")] == ["Linz"]
    assert memory.get(older).superseded_by in (newer, dup)
    memory.undo(found.batch)
    assert sorted(fact.value or "" for fact in memory.lookup("user", "location")) == ["Graz", "Linz", "Linz"]


def test_what_the_agent_noted_replaces_nothing(memory: Memory, clock: ManualClock) -> None:
    users = memory.store("I live in Graz.").id
    clock.advance(DAY)
    agents = memory.store(
        "The user lives in Linz.", entity="user", key="location", value="Linz", channel=Channel.TOOL_UNASKED
    )
    found = memory.admin.audit(fix=True)
    assert [(each.id, each.kind, each.remedy) for each in found.suspects] == [(users, "contradiction", "link")]
    assert memory.get(users).superseded_at is None
    assert [related.link.type for related in memory.related(agents.id)] == ["CONTRADICTS"]


def test_what_is_pinned_is_told_and_left_alone(memory: Memory) -> None:
    junk = memory.pin(put(memory, "Can you rerun the tests, please?", extraction_method="rule:factual")).id
    found = memory.admin.audit(fix=True)
    assert [(each.id, each.remedy) for each in found.suspects] == [(junk, "none")]
    assert found.fixed == 0
    assert memory.has(junk)


def test_progress_ends_with_all_of_them(memory: Memory) -> None:
    for number in range(3):
        memory.store(f"House {number} is green.")
    steps: list[tuple[int, int]] = []
    memory.admin.audit(progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (3, 3)


def test_what_means_the_same_in_other_words_is_told_by_the_stored_vectors(open_memory: OpenMemory) -> None:
    memory = open_memory(compare={"vector": 0, "classify": False})
    first = memory.store("the heron release train leaves from platform nine")
    second = memory.store("from platform nine leaves the heron release train")
    memory.store("the heron release train leaves from platform nine on Mondays with Ann")
    memory.store("the heron release train never leaves from platform nine")
    memory.close()
    found = open_memory(embedder="none", compare={"vector": 0.8}).admin.audit()
    assert kinds(found) == {second.id: "duplicate"}
    assert found.suspects[0].other_id == first.id
    assert "cosine" in found.suspects[0].evidence
