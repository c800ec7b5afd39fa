"""Measures the redactor: what it catches, what it takes wrongly, and how long it needs.

python -m bench secrets --json
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from bench.program import program
from bench.secret_samples import (
    DATA,
    KINDS,
    Sample,
    fill,
    look_alikes,
    secret_samples,
    traces,
    worded_samples,
    wrapped_samples,
)  # fmt: skip
from perdure.secrets.redact import redact
from perdure.text.clean import clip

BLIND = Path(__file__).parent / "data" / "secrets-blind.json"
CAUGHT = 0.95
FALSE = 0.03
ORDINARY_MS = 1.0
WORST_MS = 300.0
ORDINARY = 16_384
WORST = 100_000
CLIPPED = 5_000
"""Characters to which a message is cut before it is looked at, by default."""
_WORDS = """
we went to the market on Saturday and bought apples for the cake that my sister wanted her dog ran after a ball in
the park while I was talking with an old friend about the new job she starts in June it rained all afternoon so they
stayed at home and watched a film nobody could remember later can you please look at the tests again something fails
"""
REPEATED: Sequence[str] = DATA["repeated"]


def _prose(rng: random.Random, size: int) -> str:
    words = _WORDS.split()
    text = ""
    while len(text) < size:
        said = " ".join(rng.choices(words, k=rng.randint(4, 18)))
        text += f"{said.capitalize()}{rng.choice('.!?')}{rng.choice((' ', ' ', chr(10)))}"
    return text[:size]


def _cpu_ms(work: Callable[[], object], rounds: int = 5) -> float:
    """Return the least CPU time of several rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1000


def shares(samples: Callable[[int], Iterable[tuple[str, bool]]], seeds: Sequence[int]) -> dict[str, float]:
    """Return for each name the share of what is true of its samples, over all seeds."""
    found: dict[str, list[bool]] = defaultdict(list)
    for seed in seeds:
        for name, true in samples(seed):
            found[name].append(true)
    return {name: sum(hits) / len(hits) for name, hits in found.items()}


def caught(seed: int) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each sample, and whether nothing of it is left."""
    for sample in secret_samples(seed):
        text = redact(sample.text).text
        yield sample.kind, not any(part in text for part in sample.parts)


def wrong(seed: int) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each look-alike, and whether something is taken from it."""
    yield from ((kind, redact(text).text != text) for kind, text in look_alikes(seed))


def hidden(samples: Mapping[str, Sequence[Sample]]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each sample, and whether no trace of it is left."""
    for name, some in samples.items():
        yield from ((name, not traces(sample, redact(sample.text).text)) for sample in some)


def blind() -> tuple[int, int, int, int]:
    """Return of a set whose writer had read no pattern: secrets gone of how many, look-alikes taken of how many."""
    data = json.loads(BLIND.read_text(encoding="utf-8"))
    samples = [
        Sample(item["kind"], "blind", item["text"].replace("<secret>", secret), (secret,))
        for item in data["secrets"]
        for secret in ["".join(item["secret"])]
    ]
    gone = sum(not traces(sample, redact(sample.text).text) for sample in samples)
    taken = sum(redact(text).text != text for text in data["look_alikes"])
    return gone, len(samples), taken, len(data["look_alikes"])


def hostile(seed: int) -> dict[str, str]:
    """Return the texts for the worst case, each of 100,000 characters at most, by name."""
    rng = random.Random(seed)
    texts = {repr(piece): (piece * (WORST // len(piece) + 1))[:WORST] for piece in REPEATED}
    texts["base64 wall"] = fill(rng, f"<{WORST}b>")
    texts["base64 lines"] = "\n".join(fill(rng, "<76b>") for _ in range(WORST // 77))
    texts["digits"] = fill(rng, f"<{WORST}d>")
    texts["random words"] = " ".join(fill(rng, "<9w>") for _ in range(WORST // 10))
    texts["a line of 1 MB, clipped"] = clip("password: " * 100_000, CLIPPED)
    return texts


@click.option("--seed", type=int, default=1, help="The first of the seeds.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, help="How many seeds.")
def bench(seed: int, rounds: int) -> dict[str, object]:
    """Measure the redactor: shares are from 0 to 1, times milliseconds of CPU. Exit code 1: one is beyond its limit."""
    seeds = range(seed, seed + rounds)
    kinds, false = shares(caught, seeds), shares(wrong, seeds)
    figures: dict[str, object] = {
        "kinds": len(kinds),
        "look_alike_kinds": len(false),
        "caught": round(sum(kinds.values()) / len(kinds), 4),
        "false": round(sum(false.values()) / len(false), 4),
        "missed_by_kind": {kind: share for kind, share in kinds.items() if share < 1},
        "false_by_kind": {kind: share for kind, share in false.items() if share},
    }
    gone_of = shares(lambda seed: hidden(wrapped_samples(seed)), seeds)
    wrapped = {name: round(share * len(KINDS), 1) for name, share in gone_of.items()}
    wordings = shares(lambda seed: hidden(worded_samples(seed)), seeds)
    figures |= {
        "wrapped_of": len(KINDS),
        "plain": wrapped.pop("plain"),
        "wrapped": wrapped,
        "wrapped_mean": round(sum(wrapped.values()) / len(wrapped), 1),
        "wordings": round(sum(wordings.values()) / len(wordings), 4),
        "missed_wordings": {name: share for name, share in wordings.items() if share < 1},
    }
    gone, secrets, taken, look_alikes = blind()
    figures |= {"blind_caught": f"{gone} of {secrets}", "blind_false": f"{taken} of {look_alikes}"}
    text = _prose(random.Random(seeds[0]), ORDINARY)
    figures["ms_per_16k_ordinary"] = round(_cpu_ms(partial(redact, text), 30), 3)
    times = {name: _cpu_ms(partial(redact, text), 3) for name, text in hostile(seeds[0]).items()}
    slowest = sorted(times, key=times.__getitem__, reverse=True)[:5]
    figures["ms_per_100k_worst"] = round(times[slowest[0]], 1)
    figures["slowest"] = {name: round(times[name], 1) for name in slowest}
    return figures


def _beyond(figures: Mapping[str, Any]) -> bool:
    limits = {"ms_per_16k_ordinary": ORDINARY_MS, "ms_per_100k_worst": WORST_MS, "false": FALSE}
    return figures["caught"] < CAUGHT or any(figures.get(name, 0) > limit for name, limit in limits.items())


main = program(bench, failed=_beyond)
