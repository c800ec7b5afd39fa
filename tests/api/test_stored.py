"""Whoever stores something hears what became of it: stored, known already, in the place of what, what is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.api.stored import Outcome
from perdure.api.tools import call_tool
from perdure.errors import InputError, NotFoundError
from perdure.hooks.types import Channel, ToolResult, TurnContext
from tests.cli.calling import call, call_json
from tests.kit import OpenMemory

DIRECT = TurnContext(agent_id="main", session_id="s")
GROUP = TurnContext(agent_id="main", session_id="g", chat="group", vouched=True)
ASKED = "Please remember that."


def tool(memory: Memory, text: str, context: TurnContext = DIRECT, **values: Any) -> ToolResult:
    return call_tool(memory, "memory_store", {"text": text, **values}, context, ASKED)


def test_what_is_new_is_stored_and_what_is_known_is_confirmed(open_memory: OpenMemory) -> None:
    memory = open_memory()
    new = memory.store("I live in Ghent.")
    again = memory.store("I live in Ghent.")
    assert (new.outcome, new.gone) == (Outcome.STORED, ())
    assert new.told() == f"Stored as {new.id[:8]}."
    assert (again.outcome, again.id, again.gone) == (Outcome.CONFIRMED, new.id, ())
    assert again.told() == f"Already known; confirmed {new.id[:8]} 'I live in Ghent.'"


def test_what_is_replaced_is_told_and_its_words_undo_it(open_memory: OpenMemory) -> None:
    memory = open_memory()
    old = memory.store("I live in Ghent.")
    new = memory.store("I moved to Bruges.")
    assert (new.outcome, [fact.id for fact in new.gone]) == (Outcome.REPLACED, [old.id])
    undo = f"(undo: perdure undo --batch {new.batch[:8]})"
    assert new.told() == f"Stored as {new.id[:8]}. Replaced {old.id[:8]} 'I live in Ghent.' {undo}"
    memory.undo(new.batch[:8])
    assert memory.admin.live_ids() == {old.id}


@pytest.mark.parametrize("batch", ["", "1", "zzzzzzzz"])
def test_a_beginning_that_names_no_change_undoes_nothing(open_memory: OpenMemory, batch: str) -> None:
    memory = open_memory()
    kept = memory.store("I live in Ghent.")
    with pytest.raises(NotFoundError, match="there is no"):
        memory.undo(batch or kept.batch[:7])
    assert memory.admin.live_ids() == {kept.id}


def test_by_hand_it_is_told_as_well(open_memory: OpenMemory) -> None:
    memory = open_memory()
    old = memory.store("The gate code is on the blue card.")
    new = memory.store("The gate opens with a key now.", supersedes=old.id)
    changed = memory.update(new.id, text="The gate opens with two keys now.")
    moved = memory.update(changed.id, importance=0.9)
    assert [(done.outcome, [fact.id for fact in done.gone]) for done in (new, changed, moved)] == [
        (Outcome.REPLACED, [old.id]), (Outcome.REPLACED, [new.id]), (Outcome.STORED, []),
    ]  # fmt: skip


def test_what_is_returned_is_the_memory(open_memory: OpenMemory) -> None:
    memory = open_memory()
    done = memory.store("I live in Ghent.")
    assert done == memory.get(done.id) == done.fact
    assert done != memory.store("My dentist is Dr. Kay.")


def test_what_waits_for_a_review_is_told(open_memory: OpenMemory) -> None:
    memory = open_memory(capture_limits={"turn": 1})
    said = "My sister lives in Bergen. My brother lives in Porto."
    memory.turns.after([{"role": "user", "content": said}], True, TurnContext(session_id="s"))
    memory.settle()
    [waiting] = memory.admin.review()
    again = memory.store(waiting.text, channel=Channel.TOOL_UNASKED)
    assert again.told().endswith("it is pending review: perdure review")


def test_what_was_purged_is_not_called_stored(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.admin.purge(memory.store("The old pier is called Wraith.").id)
    with pytest.raises(InputError, match="purged"):
        memory.store("The old pier is called Wraith.")
    answer = tool(memory, "The old pier is called Wraith.")
    assert answer.refused
    assert "Stored" not in answer.text


def test_the_tool_tells_the_model_and_shows_nothing_where_others_read_along(open_memory: OpenMemory) -> None:
    memory = open_memory()
    first = tool(memory, "I live in Ghent.")
    assert tool(memory, "I live in Ghent.").text.startswith("Already known")
    second = tool(memory, "I moved to Bruges.")
    assert "I live in Ghent." in second.text
    assert (second.details["outcome"], second.details["gone"]) == ("replaced", [first.details["id"]])
    overheard = tool(memory, "I moved to Antwerp.", GROUP)
    assert second.details["id"][:8] in overheard.text
    assert "Bruges" not in overheard.text


def test_the_command_prints_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_HOME", str(home))
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")
    call("store", "I live in Ghent.")
    assert "Replaced" in call("store", "I moved to Bruges.").output
    told = call_json("store", "I moved to Antwerp.")
    assert (told["outcome"], [fact["text"] for fact in told["gone"]]) == ("replaced", ["I moved to Bruges."])
    assert "Reverted 2 memories" in call("undo", "--batch", told["batch"][:8]).output


def test_what_was_replaced_is_listed_and_single_ones_come_back(open_memory: OpenMemory) -> None:
    memory = open_memory()
    old = memory.store("I live in Ghent.")
    new = memory.store("I moved to Bruges.")
    newest = memory.store("I moved to Antwerp.")
    listed = memory.admin.replaced()
    assert [(each.old.id, each.new.id if each.new else None) for each in listed] == [
        (new.id, newest.id), (old.id, new.id),
    ]  # fmt: skip
    assert listed[0].batch == newest.batch
    assert memory.admin.replaced(since=listed[0].at + 1) == []
    tried = memory.admin.take_back(old.id[:8], dry_run=True)
    assert (tried[0].superseded_at, memory.admin.live_ids()) == (None, {newest.id})
    assert [fact.id for fact in memory.admin.take_back(old.id[:8])] == [old.id]
    assert memory.admin.live_ids() == {old.id, newest.id}
    assert memory.get(new.id).supersedes_id is None
    assert [each.old.id for each in memory.admin.replaced()] == [new.id]
    memory.undo()
    assert [each.old.id for each in memory.admin.replaced()] == [new.id, old.id]


def test_what_was_said_in_a_conversation_is_listed_too(open_memory: OpenMemory) -> None:
    memory = open_memory()
    for text in ("I live in Ghent.", "I moved to Bruges."):
        memory.turns.after([{"role": "user", "content": text}], True, TurnContext(session_id=text))
        memory.settle()
    [each] = memory.admin.replaced()
    assert (each.old.text, each.new and each.new.text, each.session) == (
        "I live in Ghent.", "I moved to Bruges.", "I moved to Bruges.",
    )  # fmt: skip


def test_what_counts_cannot_be_taken_back(open_memory: OpenMemory) -> None:
    memory = open_memory()
    kept = memory.store("I live in Ghent.")
    with pytest.raises(InputError, match="neither replaced nor withdrawn"):
        memory.admin.take_back(kept.id)
    with pytest.raises(InputError, match="no memory specified"):
        memory.admin.take_back()
    with pytest.raises(InputError, match="limit is 0"):
        memory.admin.replaced(limit=0)
