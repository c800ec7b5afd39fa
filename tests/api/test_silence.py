"""What was forgotten is silent where past conversations are searched; what is merely near it is not."""

from __future__ import annotations

from pathlib import Path

from perdure.api.memory import Memory
from perdure.clock import ManualClock
from tests.kit import OpenMemory, for_each

SAME = [
    ("I live in Graz.", "I live in Graz."),
    ("I live in Graz.", "By the way: I live in Graz, near the opera."),
    ("I live in Graz.", "So you live in Graz?"),
    ("My son Jonah is coeliac.", "We need a cake and my son Jonah is coeliac, you know."),
    ("I smoke.", "I smoke every day."),
    ("I'm pregnant, and I love it.", "I'm pregnant!"),
    ("We use Kafka in staging, because Nora likes it.", "In staging we use Kafka."),
]
NEAR = [
    ("I live in Graz.", "I live in Linz."),
    ("I live in Graz.", "My sister lives in Graz."),
    ("I live in Graz.", "I don't live in Graz."),
    ("My son Jonah is coeliac.", "My son Jonah is seven."),
    ("My son Jonah is coeliac.", "My son Elias is coeliac."),
    ("I'm pregnant, and I love it.", "I love the opera."),
    ("I think, we use Kafka in staging.", "I think I should buy oat milk."),
    ("I have a dog, but I prefer cats.", "I have a dog called Rex."),
]


@for_each(("forgotten", "said", "silent"), [*((*pair, True) for pair in SAME), *((*pair, False) for pair in NEAR)])
def test_a_past_sentence_is_silent_if_it_says_the_same(
    open_memory: OpenMemory, tmp_path: Path, clock: ManualClock, forgotten: str, said: str, silent: bool
) -> None:
    home = tmp_path / f"{forgotten} {said}".replace("/", "")
    with open_memory(home, embedder="none") as memory:
        memory.files.add_transcript([{"role": "user", "content": said}], "then")
        memory.files.sync()
        fact = memory.store(forgotten)
        assert shown(memory, said)
        clock.advance(60)
        memory.forget(fact.id)
        assert shown(memory, said) is not silent
        memory.unforget(fact.id)
        assert shown(memory, said)


def shown(memory: Memory, said: str) -> bool:
    return any(said in result.snippet for result in memory.files.search(said, min_score=0).results)
