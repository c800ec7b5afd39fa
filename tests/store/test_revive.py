"""What earlier rules hid comes back, once: journalled, to be undone, and nothing that somebody decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.hooks.types import Channel
from perdure.maintenance.backup import backup
from perdure.store import lifecycle
from perdure.store.expiry import prune
from perdure.store.fact import Fact
from perdure.store.inventory import State
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.cli.calling import call, call_json
from tests.kit import DAY, START, OpenMemory, recalled

pytestmark = pytest.mark.sqlite

COELIAC = "I'm coeliac."
USER = Author(Channel.USER)


class Earlier:
    """A store as an earlier version has left it."""

    def __init__(self, home: Path, clock: ManualClock) -> None:
        self.home = home
        self.clock = clock
        self.store = Store(home, clock=clock)

    def add(self, text: str, decay_class: str = "stable", author: Author = USER, **more: object) -> str:
        """Add a fact of the owner's, as capture did."""
        given = {"channel": Channel.USER, "extraction_method": "rule:factual", **more}
        fact = replace(Fact(text, scope="user", scope_target="owner"), decay_class=decay_class, **given)  # type: ignore[arg-type]
        with self.store.write(author) as tx:
            return tx.add(fact).id

    def supersede(self, old: str, new: str, reason: str) -> None:
        with self.store.write(USER) as tx:
            tx.supersede(old, new, reason)

    def later(self, days: float, retention: float = 30.0) -> None:
        """Let days pass, and prune."""
        self.clock.advance(days * DAY)
        prune(self.store, retention * DAY, confirmed=True)

    def leave(self) -> None:
        """Close it, with the mark of the version before."""
        self.store.close()
        connection = apsw.Connection(str(self.home / "facts.db"))
        connection.execute("DELETE FROM meta WHERE key = 'earlier_rules'")
        for index in ("facts_said", "facts_waiting", "journal_batch", "journal_undone"):
            connection.execute(f"DROP INDEX {index}")
        connection.execute("PRAGMA user_version = 4")
        connection.close()


@pytest.fixture
def earlier(home: Path, clock: ManualClock) -> Iterator[Earlier]:
    store = Earlier(home, clock)
    yield store
    store.store.close()


def reopened(earlier: Earlier, open_memory: OpenMemory) -> Memory:
    """Open the store with the present version, and wait until it has looked after it."""
    earlier.leave()
    memory = open_memory()
    assert memory.settle()
    return memory


def states(memory: Memory) -> dict[str, State]:
    return {each.fact.text: each.state for each in memory.admin.inventory().facts}


def test_what_expired_by_a_class_that_nobody_named_is_back_at_the_first_start(
    earlier: Earlier, open_memory: OpenMemory
) -> None:
    coeliac = earlier.add(COELIAC)
    todo = earlier.add("I need to take insulin twice a day.", "active", extraction_method="explicit")
    earlier.later(98)
    memory = reopened(earlier, open_memory)
    assert states(memory) == dict.fromkeys((COELIAC, "I need to take insulin twice a day."), State.PRESENT)
    for fact_id in (coeliac, todo):
        fact = memory.get(fact_id)
        assert (fact.decay_class, fact.expires_at, fact.valid_until) == ("permanent", None, None)
    earlier.clock.advance(400 * DAY)
    assert recalled(memory, "Am I coeliac?") == [COELIAC]
    [result] = [state.result for name, state in memory.admin.jobs().items() if name == "revive" and state]
    assert result == "2 expired memories came back"
    assert memory.admin.verify() == []


def test_a_dry_run_changes_nothing_and_says_the_same(earlier: Earlier, open_memory: OpenMemory) -> None:
    fact_id = earlier.add(COELIAC)
    earlier.later(98)
    live = earlier.add("My blood type is O negative.")
    earlier.leave()
    memory = open_memory(guest=True)
    told = memory.upkeep.revive(dry_run=True)
    assert (told.lengthened, told.expired, told.batch) == ((fact_id, live), (fact_id,), None)
    assert states(memory)[COELIAC] is State.EXPIRED
    done = memory.upkeep.revive()
    assert replace(done, batch=None) == told
    assert memory.upkeep.revive().lengthened == ()


def test_it_can_be_undone_by_its_batch_and_is_not_done_again(earlier: Earlier, open_memory: OpenMemory) -> None:
    earlier.add(COELIAC)
    earlier.later(98)
    earlier.leave()
    memory = open_memory(guest=True)
    before = memory.admin.inventory().facts[0].fact
    done = memory.upkeep.revive()
    assert done.batch is not None
    assert memory.undo(dry_run=True).batch != done.batch, "it is nobody's last change"
    memory.undo(done.batch)
    after = memory.admin.inventory().facts[0].fact
    assert replace(after, change_seq=0) == replace(before, change_seq=0)
    memory.close()
    again = open_memory()
    assert again.settle()
    assert states(again) == {COELIAC: State.EXPIRED}


def test_a_class_that_somebody_named_counts_as_before(earlier: Earlier, open_memory: OpenMemory) -> None:
    names = {
        earlier.add("The kettle is broken.", "short", extraction_method="explicit"),
        earlier.add("The boiler is loud.", "stable", Author(Channel.IMPORT, host="import"), extraction_method=None),
        earlier.add("intent: move the nest", "checkpoint", category="checkpoint", extraction_method="explicit"),
        earlier.add("The heron comes up often (5 memories).", "durable", extraction_method="reflected"),
    }
    changed = earlier.add("The lamp is dim.")
    with earlier.store.write(USER) as tx:
        lifecycle.update(tx, changed, {"decay_class": "stable"})
    earlier.later(98)
    memory = reopened(earlier, open_memory)
    assert set(states(memory).values()) == {State.EXPIRED}
    assert len(states(memory)) == len(names) + 1


def test_what_ends_by_its_own_words_goes_on_ending(earlier: Earlier, open_memory: OpenMemory) -> None:
    earlier.add("We use the old oven for now.")
    mood = earlier.add("My mood is bad right now.", "session")
    memory = reopened(earlier, open_memory)
    assert memory.get(mood).expires_at == START + 90 * DAY
    earlier.clock.advance(400 * DAY)
    assert memory.live_ids() == set()


def test_what_was_too_uncertain_is_back(earlier: Earlier, open_memory: OpenMemory) -> None:
    faint = earlier.add(COELIAC, "permanent", confidence=0.05)
    with earlier.store.write(USER) as tx:
        # As earlier versions let it go.
        tx.change(faint, "expire", {"expires_at": tx.now, "valid_until": tx.now}, reason="too uncertain")
    memory = reopened(earlier, open_memory)
    assert states(memory) == {COELIAC: State.PRESENT}
    assert memory.get(faint).expires_at is None


def test_nothing_forgotten_rejected_or_purged_returns(earlier: Earlier, open_memory: OpenMemory) -> None:
    forgotten = earlier.add("I like tea.")
    earlier.add("I like chess.", review_state="rejected")
    old, new = earlier.add("I like golf."), earlier.add("The tide is high.")
    earlier.supersede(old, new, "says otherwise of the same")
    with earlier.store.write(USER) as tx:
        lifecycle.forget(tx, forgotten)
        lifecycle.forget(tx, old)
    earlier.later(98)
    memory = reopened(earlier, open_memory)
    assert states(memory) == {
        "I like tea.": State.FORGOTTEN,
        "I like golf.": State.FORGOTTEN,
        "I like chess.": State.EXPIRED,
        "The tide is high.": State.PRESENT,
    }


def test_what_was_replaced_on_a_guess_waits_for_review_beside_the_newer(
    earlier: Earlier, open_memory: OpenMemory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    ant = earlier.add("One jack jumper ant put me in hospital.")
    frames = earlier.add("The plastic frames stand in the shed.")
    earlier.supersede(ant, frames, "says otherwise of the same")
    earlier.later(98)
    memory = reopened(earlier, open_memory)
    [waiting] = memory.admin.review()
    assert (waiting.id, waiting.expires_at, waiting.superseded_by) == (ant, None, None)
    assert memory.get(frames).supersedes_id is None
    [change] = [each for each in memory.admin.history(ant).changes if each.action == "revive"]
    assert change.other_id == frames
    assert recalled(memory, "Which ant put me in hospital?") == []
    listed = call_json("review", "--home", home)
    assert [(each["id"], each["beside"]["id"]) for each in listed["facts"]] == [(ant, frames)]
    shown = call("review", "--home", home).output
    assert f"was replaced by {frames[:8]}: The plastic frames stand in the shed." in shown
    memory.admin.approve(ant)
    assert recalled(memory, "Which ant put me in hospital?") == [waiting.text]
    assert memory.admin.verify() == []


@pytest.mark.parametrize("reason", ["by hand", "updated", "told apart from what is known", "approved", "consolidated"])
def test_what_somebody_replaced_stays_replaced(earlier: Earlier, open_memory: OpenMemory, reason: str) -> None:
    old, new = earlier.add("I like golf."), earlier.add("The tide is high.")
    earlier.supersede(old, new, reason)
    memory = reopened(earlier, open_memory)
    assert states(memory)["I like golf."] is State.FORMER


def test_what_the_present_rules_replace_stays_replaced(earlier: Earlier, open_memory: OpenMemory) -> None:
    old = earlier.add("I live in Ghent.", entity="user", key="location", value="Ghent")
    new = earlier.add("I live in Lisbon.", entity="user", key="location", value="Lisbon")
    earlier.supersede(old, new, "slot holds one value")
    memory = reopened(earlier, open_memory)
    assert states(memory) == {"I live in Ghent.": State.FORMER, "I live in Lisbon.": State.PRESENT}


def test_what_was_withdrawn_on_a_guess_waits_for_review(earlier: Earlier, open_memory: OpenMemory) -> None:
    golf, chess = earlier.add("I like golf."), earlier.add("I like chess.")
    with earlier.store.write(USER) as tx:
        lifecycle.retract(tx, golf, "says that it is over")
        lifecycle.retract(tx, chess, "told by hand")
    memory = reopened(earlier, open_memory)
    assert states(memory) == {"I like golf.": State.PENDING, "I like chess.": State.FORMER}


def test_what_was_removed_is_counted_with_the_backup_that_holds_it(
    earlier: Earlier, open_memory: OpenMemory, home: Path
) -> None:
    gone = earlier.add(COELIAC)
    copy = backup(earlier.store)
    earlier.add("My blood type is O negative.")
    earlier.later(98)
    earlier.later(31)
    earlier.leave()
    memory = open_memory(guest=True)
    done = memory.upkeep.revive()
    assert not memory.has(gone)
    assert done.removed == 2
    assert done.kept_in == {str(copy): 1}


def test_nothing_is_removed_before_it_was_looked_at(earlier: Earlier, open_memory: OpenMemory) -> None:
    earlier.add(COELIAC)
    earlier.later(98)
    earlier.clock.advance(400 * DAY)
    earlier.leave()
    memory = open_memory(guest=True)
    assert memory.admin.prune(dry_run=True).removed == ()
    assert memory.admin.prune().removed == ()
    assert states(memory) == {COELIAC: State.PRESENT}


def test_what_is_stored_since_is_left_alone(earlier: Earlier, open_memory: OpenMemory) -> None:
    memory = reopened(earlier, open_memory)
    fact = memory.store("The kettle is broken.", decay_class="stable")
    assert memory.upkeep.revive().lengthened == ()
    assert memory.get(fact.id).expires_at == START + 90 * DAY


def test_the_command_prints_the_counts(
    earlier: Earlier, open_memory: OpenMemory, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    earlier.add(COELIAC)
    earlier.later(98)
    earlier.leave()
    with open_memory(guest=True):
        pass
    # The command runs by the real clock, to which the store lies in the future: what expired there is merely shortened.
    told = call("revive", "--dry-run", "--home", home).output
    assert "live longer, as nobody gave them an end" in told
    assert "0 would wait for a review" in told
    done = call_json("revive", "--home", home)
    assert done.keys() == {"lengthened", "expired", "review", "removed", "kept_in", "batch", "dry_run"}


def test_a_new_store_has_nothing_to_bring_back(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store("The kettle is broken.", decay_class="stable")
    done = memory.upkeep.revive()
    assert (done.lengthened, done.review, done.removed, done.batch) == ((), (), 0, None)
    assert memory.admin.run_job("revive") == "nothing was hidden"
