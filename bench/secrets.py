"""Measures the redactor: what it catches, what it takes wrongly, and how long it needs.

python -m bench.secrets --json
"""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from bench.secret_lookalikes import look_alikes
from bench.secret_samples import Sample, fill, secret_samples
from bench.secret_wraps import KINDS, traces, worded_samples, wrapped_samples
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
REPEATED = (
    "password ", "password: ", "password:\n", "password=", "password is ", "password for the ", "my pin is 1 ", "pwd ",
    "passphrase: a ", "token=", "key=", "api_key: ", "<tag ", "<password>", "a", "A", "1", "=", ":", "_", "-", "/",
    "+", " ", "\n", "a=", "a:", "a=\n", "a1", "1 ", "1.", "1-", "4111 ", "DE89 ", "://a:", "://", "eyJ", "eyJa.",
    "sk-", "sk-a ", "aB3dE6gH9jK2", "-----BEGIN ", "bearer ", "authorization: ", "-u a:", "--user ", "\u5bc6\u7801",
    "\u0130", "secret ", "Q~", "abandon ", "ability\n", "AKIA", "ssn ", "recovery codes ", "pass: ", "mot de passe ",
    "a\u200b", "\uff11a", "\u0430a", "e\u0301", "a-\n", "a1\nb2", "12\n34\n", "ab-cd-", "QUJDREVGR0hJSktM\n",
    "password,a\n", "|password|\n|x1y2z3|\n", "password. It is a1b2c3 ", "a1b2c3d is my password ",
    "password is blue tiger ", "passwort f\u00fcr ", "\u043f\u0430\u0440\u043e\u043b\u044c \u043e\u0442 ",
    "API_KEY=AbCdEfGhIjKlMnOp ", "cookie: a=b; ", "machine a login b ", "mysql -p", "aB3dE6gH9\n", "123456A",
    "\"", "<", "[", "\\n",
)  # fmt: skip
"""What a pattern that goes back and forth would need for ever for."""


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


def caught(seeds: Sequence[int]) -> dict[str, float]:
    """Return for each kind the share of samples of which nothing is left."""
    found: dict[str, list[bool]] = defaultdict(list)
    for seed in seeds:
        for sample in secret_samples(seed):
            text = redact(sample.text).text
            found[sample.kind].append(not any(part in text for part in sample.parts))
    return {kind: sum(hits) / len(hits) for kind, hits in found.items()}


def wrong(seeds: Sequence[int]) -> dict[str, float]:
    """Return for each kind of look-alike the share from which something is taken."""
    found: dict[str, list[bool]] = defaultdict(list)
    for seed in seeds:
        for kind, text in look_alikes(seed):
            found[kind].append(redact(text).text != text)
    return {kind: sum(hits) / len(hits) for kind, hits in found.items()}


def wrapped(seeds: Sequence[int]) -> dict[str, float]:
    """Return for each wrapping of how many kinds nothing is left, on average over the seeds."""
    found: dict[str, int] = defaultdict(int)
    for seed in seeds:
        for name, samples in wrapped_samples(seed).items():
            found[name] += sum(not traces(sample, redact(sample.text).text) for sample in samples)
    return {name: round(count / len(seeds), 1) for name, count in found.items()}


def worded(seeds: Sequence[int]) -> dict[str, float]:
    """Return for each language and form the share of texts in which nothing of the password is left."""
    found: dict[str, list[bool]] = defaultdict(list)
    for seed in seeds:
        for name, samples in worded_samples(seed).items():
            found[name] += (not traces(sample, redact(sample.text).text) for sample in samples)
    return {name: sum(hits) / len(hits) for name, hits in found.items()}


def blind() -> tuple[int, int, int, int]:
    """Return how the set fares that somebody wrote who had read no pattern.

    Returns:
        Secrets of which nothing is left, of how many; look-alikes of which something was taken, of how many.
    """
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


def measure(seeds: Sequence[int], *, timed: bool = True) -> dict[str, object]:
    """Return all figures; shares are from 0 to 1, times milliseconds of CPU."""
    kinds, false = caught(seeds), wrong(seeds)
    figures: dict[str, object] = {
        "kinds": len(kinds),
        "look_alike_kinds": len(false),
        "caught": round(sum(kinds.values()) / len(kinds), 4),
        "false": round(sum(false.values()) / len(false), 4),
        "missed_by_kind": {kind: share for kind, share in kinds.items() if share < 1},
        "false_by_kind": {kind: share for kind, share in false.items() if share},
    }
    hidden, wordings = wrapped(seeds), worded(seeds)
    figures |= {
        "wrapped_of": len(KINDS),
        "plain": hidden.pop("plain"),
        "wrapped": hidden,
        "wrapped_mean": round(sum(hidden.values()) / len(hidden), 1),
        "wordings": round(sum(wordings.values()) / len(wordings), 4),
        "missed_wordings": {name: share for name, share in wordings.items() if share < 1},
    }
    gone, secrets, taken, look_alikes = blind()
    figures |= {"blind_caught": f"{gone} of {secrets}", "blind_false": f"{taken} of {look_alikes}"}
    if timed:
        text = _prose(random.Random(seeds[0]), ORDINARY)
        figures["ms_per_16k_ordinary"] = round(_cpu_ms(partial(redact, text), 30), 3)
        times = {name: _cpu_ms(partial(redact, text), 3) for name, text in hostile(seeds[0]).items()}
        slowest = sorted(times, key=times.__getitem__, reverse=True)[:5]
        figures["ms_per_100k_worst"] = round(times[slowest[0]], 1)
        figures["slowest"] = {name: round(times[name], 1) for name in slowest}
    return figures


def _within(figures: dict[str, object]) -> bool:
    limits = {"ms_per_16k_ordinary": ORDINARY_MS, "ms_per_100k_worst": WORST_MS, "false": FALSE}
    below = all(float(str(figures.get(name, 0))) <= limit for name, limit in limits.items())
    return below and float(str(figures["caught"])) >= CAUGHT


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="The first of the seeds.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="How many seeds.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(seed: int, rounds: int, as_json: bool) -> None:
    """Measure the redactor. Exit code 1: a figure is beyond its limit."""
    figures = measure(range(seed, seed + rounds))
    if as_json:
        click.echo(json.dumps(figures, indent=2, ensure_ascii=False))
    else:
        for name, value in figures.items():
            click.echo(f"{name:24} {value}")
    raise SystemExit(0 if _within(figures) else 1)


if __name__ == "__main__":
    main()
