"""The library: what goes in comes out, to those who may see it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.errors import (
    AmbiguousIdError,
    ExtensionError,
    InputError,
    NotFoundError,
    ScopeError,
    SettingsError,
    StoreClosedError,
    StoreCorruptError,
    StoreUnavailableError,
)
from perdure.hooks.types import Channel, TurnContext
from perdure.store import receipts
from perdure.store.scope import Audience
from perdure.store.store import Store
from tests.kit import OpenMemory, for_each, kept, nobody

TEXT = "The staging database is called heron."
QUESTION = "What is the staging database called?"


def recalled(memory: Memory, prompt: str = QUESTION) -> list[str]:
    recall = memory.recall(prompt)
    return [item.text for item in recall.items] if recall else []


def test_what_is_stored_can_be_got_looked_up_and_recalled(open_memory: OpenMemory) -> None:
    memory = open_memory()
    fact = memory.store("My sister's birthday is 3 May.", tags=["Family "])
    assert memory.get(fact.id).text == "My sister's birthday is 3 May."
    assert memory.get(fact.id[:8].upper()).id == fact.id
    assert [found.value for found in memory.lookup("SISTER", "Birthday")] == ["3 May"]
    assert [found.id for found in memory.lookup("sister", tag="family")] == [fact.id]
    assert memory.lookup("sister", tag="work") == []
    assert recalled(memory, "When is my sister's birthday?") == ["My sister's birthday is 3 May."]
    assert memory.status().facts == 1


def test_it_is_still_there_after_closing(open_memory: OpenMemory) -> None:
    first = open_memory()
    fact = first.store(TEXT)
    first.close()
    assert open_memory().get(fact.id).text == TEXT
    assert recalled(open_memory()) == [TEXT]


def test_a_fact_as_returned_is_the_fact_as_kept(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="none")
    fact = memory.store(TEXT, importance=0.9, why="the sign says so", metadata={"a": [1, None]})
    assert memory.get(fact.id) == fact


def test_an_embedded_fact_as_returned_is_the_fact_as_kept(open_memory: OpenMemory) -> None:
    memory = open_memory()
    fact = memory.store(TEXT)
    assert memory.get(fact.id) == fact


def test_given_fields_win_over_those_made_out(open_memory: OpenMemory) -> None:
    fact = open_memory().store(
        "My birthday is 3 May.", category="other", entity="ann", key="day", value="3.5.", decay_class="short", tags=[]
    )
    assert (fact.category, fact.entity, fact.key, fact.value) == ("other", "ann", "day", "3.5.")
    assert (fact.decay_class, fact.tags, fact.channel) == ("short", (), Channel.LIBRARY)


def test_storing_the_same_again_confirms_it(open_memory: OpenMemory) -> None:
    memory = open_memory()
    first = memory.store(TEXT)
    second = memory.store("the staging database is called HERON")
    assert second.id == first.id
    assert memory.get(first.id).reinforced_count == 1
    assert memory.status().facts == 1


def test_secrets_are_not_stored(open_memory: OpenMemory, home: Path) -> None:
    secret = "ghp_abcdefghij0123456789abcdefghij012345"
    memory = open_memory()
    memory.store(f"The deploy token is {secret} for now", why=f"{secret} was new", value=secret)
    memory.close()
    assert not [path for path in home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"text": ""}, InputError, "empty"),
        ({"text": "  \n"}, InputError, "empty"),
        ({"text": "x" * 100_001}, InputError, "100001"),
        ({"text": TEXT, "importance": 1.1}, InputError, r"1\.1"),
        ({"text": TEXT, "importance": float("nan")}, InputError, "nan"),
        ({"text": TEXT, "decay_class": "eternal"}, InputError, "'eternal'"),
        ({"text": TEXT, "scope": "planet:mars"}, ScopeError, "'planet'"),
        ({"text": TEXT, "scope": "agent:somebody"}, ScopeError, "agent:somebody"),
        ({"text": TEXT, "scope": "agent:"}, ScopeError, "empty"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(
    open_memory: OpenMemory, arguments: dict[str, str], error: type[Exception], message: str
) -> None:
    memory = open_memory()
    with pytest.raises(error, match=message) as raised:
        memory.store(**arguments)  # type: ignore[arg-type]
    assert TEXT not in str(raised.value)
    assert memory.status().facts == 0


@pytest.mark.parametrize("text", ["NUL \0 inside", pytest.param("a lone \ud800 surrogate"), pytest.param("\udfff")])
def test_characters_that_cannot_be_stored_do_not_stop_the_rest(open_memory: OpenMemory, text: str) -> None:
    memory = open_memory()
    fact = memory.store(f"My sign reads {text} today.")
    assert memory.get(fact.id).text.startswith("My sign reads")


def test_ids(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.store(TEXT)
    with pytest.raises(NotFoundError):
        memory.get("00000000-0000")
    for bad in ("", "abc", "not hex at all", "' OR 1=1 --"):
        with pytest.raises(InputError):
            memory.get(bad)
    assert issubclass(AmbiguousIdError, LookupError)


def test_agents_do_not_see_each_other(open_memory: OpenMemory) -> None:
    ann, bob, user = (open_memory(agent=agent) for agent in ("ann", "bob", None))
    no_one = nobody(user)
    fact = ann.store(TEXT)
    assert recalled(ann) == [TEXT]
    for other in (bob, user, no_one):
        assert recalled(other) == []
        with pytest.raises(NotFoundError):
            other.get(fact.id)
    with pytest.raises(ScopeError):
        no_one.store(TEXT)
    user.store("The staging cluster is called ibis.")
    assert recalled(bob, "What is the staging cluster called?") == ["The staging cluster is called ibis."]
    assert recalled(no_one, "What is the staging cluster called?") == []


def test_users_do_not_see_each_other(open_memory: OpenMemory) -> None:
    open_memory(user="eva").store(TEXT)
    assert recalled(open_memory(user="eva")) == [TEXT]
    assert recalled(open_memory(user="max")) == []
    assert recalled(open_memory()) == []


def test_the_global_scope_is_for_all(open_memory: OpenMemory) -> None:
    open_memory().store(TEXT, scope="global")
    assert recalled(open_memory(agent="bob", user="max")) == [TEXT]


def test_the_receipt_is_written_after_returning(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    fact = memory.store(TEXT)
    recall = memory.recall(QUESTION)
    assert recall is not None
    assert memory.settle()
    store = Store(home)
    with store.database.read() as connection:
        kept = receipts.whole(connection, recall.receipt_id, Audience.of())
        assert receipts.latest(connection, Audience.of()) == recall.receipt_id
        assert receipts.whole(connection, recall.receipt_id, Audience.of(agent="ann")) is None
    store.close()
    assert kept is not None
    assert "heron" not in json.dumps(kept.body)
    assert [(entry["id"], entry["verdict"]) for entry in kept.body["candidates"]] == [(fact.id, "injected")]


@pytest.mark.parametrize("name", ["recall_limit", "recall_max_tokens", "recall_format", "recall_placement"])
def test_recall_follows_the_settings(open_memory: OpenMemory, name: str) -> None:
    value = {"recall_limit": 1, "recall_max_tokens": 60, "recall_format": "minimal", "recall_placement": "tail"}[name]
    memory = open_memory(**{name: value})
    memory.store("The staging database is called heron.")
    memory.store("The staging database was once called ibis, before heron came.")
    recall = memory.recall(QUESTION)
    assert recall is not None
    lines = recall.block.split("\n")[2:-1]
    assert {
        "recall_limit": len(recall.items) == 1,
        "recall_max_tokens": len(recall.block.split()) <= 60,
        "recall_format": not any(line.startswith("[") for line in lines),
        "recall_placement": recall.placement == "tail",
    }[name]


def test_status_says_how_it_is(open_memory: OpenMemory, home: Path) -> None:
    status = open_memory(auto_capture=False).status()
    assert status.home == str(home)
    assert (status.facts, status.inbox, status.parked) == (0, 0, 0)
    assert (status.auto_recall, status.auto_capture) == (True, False)
    assert status.model == "ready: hash"
    assert status.problems == ()
    assert json.loads(json.dumps(status.to_dict()))["home"] == str(home)


def test_a_store_keeps_to_its_model(open_memory: OpenMemory, home: Path) -> None:
    open_memory().store(TEXT)
    other = Memory.open(home)
    try:
        assert other.ready(), "the store's model is loaded, whatever this process is set to"
        assert "hash" in other.status().model
        assert recalled(other) == [TEXT]
    finally:
        other.close()


def test_closing_twice_is_no_error_and_using_it_then_is(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.close()
    memory.close()
    with pytest.raises(StoreClosedError):
        memory.store(TEXT)


def test_a_memory_is_a_context(home: Path) -> None:
    with Memory.open(home, embedder="none") as memory:
        memory.store(TEXT)
    with pytest.raises(StoreClosedError):
        memory.status()
    assert kept(home) == [TEXT]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"embeder": "hash"}, SettingsError),
        ({"recall_limit": 0}, SettingsError),
        ({"embedder": "none such"}, ExtensionError),
    ],
)
def test_wrong_settings_are_refused(home: Path, settings: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Memory.open(home, **settings)


def test_a_setting_with_names_and_numbers_tells_both(home: Path) -> None:
    with pytest.raises(SettingsError, match=r"valid number.*'strict', 'balanced' or 'generous'"):
        Memory.open(home, recall_threshold="stric")


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    with pytest.raises(StoreUnavailableError, match="is a file"):
        Memory.open(file)
    assert file.read_text() == "precious"
    if sys.platform == "linux":
        with pytest.raises(StoreUnavailableError, match="/proc/perdure"):
            Memory.open("/proc/perdure")


@pytest.mark.sqlite
def test_a_damaged_database_is_left_untouched_and_can_be_moved_away(home: Path) -> None:
    home.mkdir()
    junk = b"this is no database " * 500
    (home / "facts.db").write_bytes(junk)
    with pytest.raises(StoreCorruptError, match=r"facts\.db"):
        Memory.open(home)
    assert (home / "facts.db").read_bytes() == junk

    (home / "facts.db").rename(home / "damaged.db")
    with Memory.open(home, embedder="none") as memory:
        memory.store(TEXT)
    assert kept(home) == [TEXT]


def test_the_switches(open_memory: OpenMemory) -> None:
    memory = open_memory(auto_recall=False, auto_capture=False)
    memory.store(TEXT)
    context = TurnContext(session_id="s")
    said = [{"role": "user", "content": "My dog is called Fido."}]
    assert memory.turns.before(QUESTION, context) is None
    assert memory.turns.after(said, True, context) == 0
    assert recalled(memory) == [TEXT]  # asking for it is no hook
    on = open_memory()
    assert on.turns.before(QUESTION, context) is not None
    assert on.turns.after(said, True, context) == 1


@pytest.mark.parametrize("trigger", ["cron", "heartbeat", "memory"])
def test_only_turns_of_a_user_count(open_memory: OpenMemory, trigger: str) -> None:
    memory = open_memory()
    memory.store(TEXT)
    context = TurnContext(session_id="s", trigger=trigger)
    assert memory.turns.before(QUESTION, context) is None
    assert memory.turns.after([{"role": "user", "content": "My dog is called Fido."}], True, context) == 0


def test_a_failed_turn_is_not_captured(open_memory: OpenMemory) -> None:
    memory = open_memory()
    said = [{"role": "user", "content": "My dog is called Fido."}]
    assert memory.turns.after(said, False, TurnContext(session_id="s")) == 0


def test_a_turn_that_could_not_be_written_is_taken_in_with_the_next_one(open_memory: OpenMemory, home: Path) -> None:
    memory, context, inbox = open_memory(), TurnContext(session_id="s"), home / "inbox"
    first = {"role": "user", "content": "I prefer tea over coffee."}
    inbox.rmdir()
    inbox.write_text("no folder")
    with pytest.raises(StoreUnavailableError):
        memory.turns.after([first], True, context)
    inbox.unlink()
    inbox.mkdir()
    second = {"role": "user", "content": "My cat is called Tom."}
    assert memory.turns.after([first, second], True, context) == 2
    assert memory.turns.after([first, second], True, context) == 0
    memory.close()
    assert kept(home) == ["I prefer tea over coffee.", "My cat is called Tom."]


def test_an_answer_is_kept_with_what_the_user_had_asked(open_memory: OpenMemory, home: Path) -> None:
    memory, context = open_memory(), TurnContext(session_id="s")
    asked = [
        {"role": "user", "content": "Is node3 safe to reboot?"},
        {"role": "assistant", "content": "Depends on what runs on it."},
    ]
    memory.turns.after(asked, True, context)
    said = {"role": "user", "content": "It holds the mail gateway, so never reboot it between 8 and 18."}
    assert memory.turns.after([*asked, said], True, context) == 1
    memory.close()
    assert kept(home) == [f"{said['content']} (after: {asked[0]['content']})"]


def test_what_was_acknowledged_before_a_crash_is_captured_at_the_next_start(
    open_memory: OpenMemory, home: Path, clock: ManualClock
) -> None:
    store = Store(home, clock=clock)
    store.inbox.append({
        "at": clock.now(), "session": "s", "cursor": "user:owner\0s", "tail": "", "scope": "user:owner",
        "host": "fake", "turn": None, "messages": [{"text": "My dog is called Fido.", "at": None}],
    })  # fmt: skip
    store.close()
    memory = open_memory()
    assert memory.settle()
    assert [fact.value for fact in memory.lookup("dog", "name")] == ["Fido"]
    memory.close()
    assert not list((home / "inbox").glob("*.jsonl"))
    open_memory().settle()
    assert kept(home) == ["My dog is called Fido."]


@for_each(
    ("call", "error"),
    [
        (lambda memory: Memory(cast(Any, 5)), InputError),
        (lambda memory: memory.store(None), InputError),
        (lambda memory: memory.store(["I like tea."]), InputError),
        (lambda memory: memory.store("I like tea.", importance="high"), InputError),
        (lambda memory: memory.store("I like tea.", tags=5), InputError),
        (lambda memory: memory.store("I like tea.", metadata=5), InputError),
        (lambda memory: memory.forget(None), InputError),
        (lambda memory: memory.recall(["tea"]), InputError),
        (lambda memory: memory.turns.after("I like tea.", True, TurnContext()), InputError),
        (
            lambda memory: memory.turns.after({"role": "user", "content": "I like tea."}, True, TurnContext()),
            InputError,
        ),
        (lambda memory: memory.update(memory.store("I like tea."), text=None), InputError),
    ],
)
def test_what_is_of_the_wrong_kind_is_refused_in_words(open_memory: OpenMemory, call: Any, error: Any) -> None:
    with pytest.raises(error):
        call(open_memory())


def test_a_memory_stands_for_its_id_and_one_tag_for_a_list(open_memory: OpenMemory) -> None:
    memory = open_memory()
    stored = memory.store("I like tea.", tags="drinks")
    assert stored.tags == ("drinks",)
    assert memory.update(stored, tags="hot").tags == ("hot",)
    assert memory.get(stored).id == stored.id
    memory.forget(stored)
    assert memory.recall("tea") is None


def test_other_names_of_arguments_are_answered_with_the_right_ones(home: Path) -> None:
    for name, right in (("user_id", "user"), ("agent_id", "agent"), ("path", "home")):
        given: dict[str, Any] = {name: "x"}
        with pytest.raises(SettingsError, match=f"did you mean {right}\\?"):
            Memory.open(home, **given)


def test_a_closed_memory_says_so(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.close()
    with pytest.raises(StoreClosedError, match="reopen"):
        memory.recall("tea")


def test_roles_by_other_names_are_understood(open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory()
    said = [{"role": "human", "content": "I own a boat."}, {"role": "ai", "content": "Fine."}]
    assert memory.turns.after(said, True, TurnContext(session_id="s")) == 1
    memory.close()
    assert kept(home) == ["I own a boat."]


CONTEXT = TurnContext(session_id="s")


@for_each(
    ("call", "named"),
    [
        (lambda memory: memory.turns.before(None, CONTEXT), "prompt"),
        (lambda memory: memory.turns.before("tea", None), "context"),
        (lambda memory: memory.turns.opening("s"), "context"),
        (lambda memory: memory.turns.foresee(None, CONTEXT), "prompt"),
        (lambda memory: memory.turns.foresee("tea", {}), "context"),
        (lambda memory: memory.turns.after([], True, "s"), "context"),
        (lambda memory: memory.turns.did(list, None), "context"),
        (lambda memory: memory.turns.before_tool({}, None), "context"),
        (lambda memory: memory.turns.before_tool("ls", CONTEXT), "given"),
        (lambda memory: memory.turns.before_compaction([], None), "context"),
        (lambda memory: memory.turns.session_start(None), "context"),
        (lambda memory: memory.turns.session_end("s"), "context"),
        (lambda memory: memory.turns.looked("s"), "receipt"),
        (lambda memory: memory.turns.past("all"), "limit"),
        (lambda memory: memory.turns.past(before=[]), "before"),
        (lambda memory: memory.turns.past(fact_id=5), "fact_id"),
        (lambda memory: memory.recall("tea", receipt_to=5), "receipt_to"),
        (lambda memory: memory.pin(memory.store("I like tea."), "yes"), "pinned"),
        (
            lambda memory: memory.link(memory.store("I like tea."), memory.store("I own a boat."), strength="x"),
            "strength",
        ),
        (lambda memory: memory.unlink(memory.store("I like tea."), memory.store("I own a boat."), []), "link type"),
        (lambda memory: memory.undo(session=[]), "session"),
        (lambda memory: memory.ready("x"), "timeout"),
        (lambda memory: memory.settle(None), "timeout"),
        (lambda memory: memory.files.search(None), "query"),
        (lambda memory: memory.files.search("tea", max_results="x"), "max_results"),
        (lambda memory: memory.files.search("tea", min_score=[]), "min_score"),
        (lambda memory: memory.files.search("tea", sources=5), "sources"),
        (lambda memory: memory.files.read(None), "path"),
        (lambda memory: memory.files.read("MEMORY.md", "x"), "start"),
        (lambda memory: memory.files.add(None), "path"),
        (lambda memory: memory.files.remove(5), "path"),
        (lambda memory: memory.files.add_transcript(None, "s"), "messages"),
        (lambda memory: memory.files.add_transcript([], None), "session"),
        (lambda memory: memory.files.flush_due("x", 1, 1, "s"), "total_tokens"),
        (lambda memory: memory.aliases.add(None, "GHA"), "name"),
        (lambda memory: memory.aliases.remove("GHA", 5), "other"),
        (lambda memory: Memory.open(cast(Any, 5)), "home"),
        (lambda memory: Memory.open(memory.status().home, clock=cast(Any, 5)), "clock"),
        (lambda memory: Memory.open(memory.status().home, scopes=cast(Any, 5)), "scopes"),
        (lambda memory: Memory.open(memory.status().home, host_config=cast(Any, 5)), "host_config"),
    ],
)
def test_what_is_of_the_wrong_type_is_refused_by_its_name(open_memory: OpenMemory, call: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        call(open_memory())


@for_each(
    "caller", [{"user": ""}, {"agent": ""}, {"user": " ada"}, {"user": "*"}, {"scopes": ["user:ada"]}, {"user": []}]
)
def test_a_caller_who_cannot_be_told_is_refused(home: Path, caller: dict[str, Any]) -> None:
    with pytest.raises(ScopeError):
        Memory.open(home, **caller)


def test_a_category_is_one_of_the_five_or_ones_own(open_memory: OpenMemory) -> None:
    memory = open_memory(categories={"music": "song"})
    song = memory.store("I like this band.", category="music")
    refused = r"'hobby' is not accepted; give one of preference, .*music"
    with pytest.raises(InputError, match=refused):
        memory.store("I like tea.", category="hobby")
    with pytest.raises(InputError, match=refused):
        memory.update(song, category="hobby")
    assert memory.update(song, category="preference").category == "preference"


def test_what_cannot_be_updated_is_answered_with_all_that_can(open_memory: OpenMemory) -> None:
    memory = open_memory()
    with pytest.raises(InputError, match="triggers"):
        memory.update(memory.store("I like tea."), colour="red")
