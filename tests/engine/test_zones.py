"""By which zone days are counted: the message's own, else the host's, else the setting's, else the machine's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from perdure.clock import ManualClock
from perdure.errors import SettingsError
from perdure.hooks.types import TurnContext
from perdure.importers.conversation_import import Talk, Talks, hear
from tests.kit import OpenMemory, for_each, machine_in, recalled

SAID = "My flight to Rome is tomorrow at 9."
AT = dt.datetime(2026, 3, 2, 20, tzinfo=dt.UTC)
"""In Auckland it is the 3rd, in Kathmandu too (01:45); in Los Angeles the 2nd, at noon."""
HERE, ZULU = AT.astimezone(dt.timezone(dt.timedelta(hours=13))).isoformat(), AT.isoformat().replace("+00:00", "Z")


@for_each(
    ("message", "told", "setting", "machine", "day", "zone"),
    [
        ({"timestamp": HERE}, "America/Los_Angeles", "America/Los_Angeles", "UTC", 4, "+13:00"),
        ({"timestamp": ZULU}, "Asia/Kathmandu", "America/Los_Angeles", "UTC", 4, "+05:45"),
        ({"timestamp": ZULU}, None, "Pacific/Auckland", "UTC", 4, "+13:00"),
        ({"timestamp": ZULU}, None, "", "Pacific/Auckland", 4, "+13:00"),
        ({"timestamp": ZULU}, None, "", "America/Los_Angeles", 3, "-08:00"),
        ({"timestamp": AT.timestamp()}, "nowhere", "America/Los_Angeles", "Pacific/Auckland", 3, "-08:00"),
        ({}, None, "Asia/Shanghai", "UTC", 4, "+08:00"),
        ({"content": f"[Tue 2026-03-03 09:00 GMT+13]\n{SAID}"}, None, "", "America/Los_Angeles", 4, "+13:00"),
    ],
)
def test_the_nearest_to_the_words_counts(
    tmp_path_factory: pytest.TempPathFactory, open_memory: OpenMemory, clock: ManualClock, message: dict[str, Any],
    told: str | None, setting: str, machine: str, day: int, zone: str,
) -> None:  # fmt: skip
    with machine_in(machine):
        memory = open_memory(tmp_path_factory.mktemp("zone"), timezone=setting)
        clock.set(AT.timestamp())
        context = TurnContext(session_id="s", timezone=told)
        memory.turns.after([{"role": "user", "content": SAID, **message}], True, context)
        assert memory.settle()
        [fact] = memory.admin.list()
    assert f"tomorrow (2026-03-0{day}) at 9" in fact.text
    assert fact.metadata["zone"] == zone


def test_who_stores_and_asks_has_the_zone_of_the_setting(open_memory: OpenMemory, clock: ManualClock) -> None:
    memory = open_memory(timezone="Pacific/Auckland")
    clock.set(AT.timestamp())
    stored = memory.store(SAID)
    assert "(2026-03-04)" in memory.get(stored.id).text
    clock.set(AT.timestamp() + 16 * 3600)
    recall = memory.recall("When is my flight to Rome?")
    assert recall is not None
    assert "(yesterday, 2026-03-03)" in recall.block
    assert recalled(memory, "Book the dentist for 4 March") == recalled(memory, "When is my flight to Rome?")


def test_an_import_counts_by_the_store(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(timezone="Asia/Kathmandu")
    message = {"role": "user", "content": SAID, "timestamp": ZULU}
    hear(memory._engine.store, Talks("chatgpt", 1, lambda: iter([Talk("s", [message], 1)])), mine=True)
    [fact] = memory.admin.list()
    assert "(2026-03-04)" in fact.text


def test_a_zone_that_is_none_is_refused(open_memory: OpenMemory) -> None:
    with pytest.raises(SettingsError, match="Europe/Lisbon"):
        open_memory(timezone="Mars/Olympus")
