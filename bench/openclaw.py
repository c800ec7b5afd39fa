"""What a turn in a real OpenClaw gateway costs with perdure, against the same host with a plugin that does nothing.

python -m bench openclaw --host DIR --json

Two gateways run side by side, and turns go to them in turn, so that what else the machine does falls on both. The
model is a server on loopback that answers at once. Latency is the whole turn over HTTP. Tokens that are billed again
are those behind the longest beginning that a request shares with the one before it in its conversation; a provider's
cache can serve no more than that beginning.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from bench.measuring import timed
from bench.placement import common
from bench.program import program
from perdure.text.tokens import estimate_tokens
from tests.e2e.gateway import Gateway, installed_host, until
from tests.e2e.model import Model, words

EMPTY_PLUGIN = Path(__file__).parent / "data" / "nothing"
TOLD = "My boat number {n} is called Albatross {n}, and I prefer harbour {n} for it."
ASKED = "What is my boat number {n} called?"
GOAL_MS = 15.0


def with_nothing(gateway: Gateway) -> None:
    """Put a plugin into the config that does nothing, in place of a memory."""
    folder = gateway.folder / "nothing"
    shutil.copytree(EMPTY_PLUGIN, folder)
    config = json.loads(gateway.config.read_text())
    access = {"enabled": True, "hooks": {"allowConversationAccess": True}}
    config["plugins"] = {
        "load": {"paths": [str(folder)]}, "slots": {"memory": "none"},
        "entries": {"nothing": access, "memory-core": {"enabled": False}},
    }  # fmt: skip
    gateway.config.write_text(json.dumps(config, indent=2))


def alternate(gateways: Mapping[str, Gateway], texts: Sequence[str], session: str) -> dict[str, list[float]]:
    """Say the same to both gateways, by turns first and second; return the milliseconds of each."""
    found: dict[str, list[float]] = {name: [] for name in gateways}
    for number, text in enumerate(texts):
        for name in sorted(gateways, reverse=bool(number % 2)):
            found[name].append(1000 * timed(partial(gateways[name].turn, text, session=session))[1])
    return found


def compared(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the medians, their ratio, and the median of the differences turn by turn."""
    differences = [ours - theirs for ours, theirs in zip(times["perdure"], times["nothing"], strict=True)]
    ours, theirs = statistics.median(times["perdure"]), statistics.median(times["nothing"])
    return {
        "perdure_p50_ms": round(ours, 2), "nothing_p50_ms": round(theirs, 2), "ratio": round(ours / theirs, 3),
        "added_p50_ms": round(statistics.median(differences), 2),
    }  # fmt: skip


def billed_again(model: Model, session: str) -> float:
    """Return the mean of tokens per request that its predecessor in the conversation does not share."""
    mark = f"session=agent:main:{session} "
    requests = [body for body in model.requests if any(mark in words(each["content"]) for each in body["messages"])]
    texts = [json.dumps([each["content"] for each in body["messages"]], ensure_ascii=False) for body in requests]
    rest = [text[common(before, text) :] for before, text in pairwise(texts)]
    return round(statistics.mean(estimate_tokens(text) for text in rest), 1) if rest else 0.0


def measured(gateways: Mapping[str, Gateway], turns: int, history: int) -> dict[str, Any]:
    """Run both gateways through the same turns and return the report."""
    for gateway in gateways.values():
        gateway.start()
    alternate(gateways, [TOLD.format(n=number) for number in range(turns)], "warm")
    until(lambda: len(gateways["perdure"].facts()) >= turns // 2, 60, "the memories are not there")
    asked = [ASKED.format(n=number) for number in range(turns)]
    young = alternate(gateways, asked, "young")
    alternate(gateways, [f"Line {number} of a long talk about nothing much." for number in range(history)], "old")
    old = alternate(gateways, asked, "old")
    again = {name: billed_again(gateway.model, "young") for name, gateway in gateways.items()}
    recalled = sum("<memory-context" in json.dumps(body["messages"]) for body in gateways["perdure"].model.requests)
    return {
        "young": compared(young), "old": compared(old), "history_turns": history, "turns_with_a_block": recalled,
        "goal_added_p50_ms": GOAL_MS, "billed_again_tokens_per_turn": again,
        "billed_again_added": round(again["perdure"] - again["nothing"], 1),
    }  # fmt: skip


@click.option("--host", type=click.Path(path_type=Path), required=True, help="Folder of Node and OpenClaw.")
@click.option("--turns", default=40, help="Turns that are measured, in a young and an old session.")
@click.option("--history", default=500, help="Turns that the old session has had before.")
@click.option("--placement", default="head", help="Where the block goes: head or tail.")
def bench(host: Path, turns: int, history: int, placement: str) -> dict[str, Any]:
    """Measure what perdure adds to a turn of OpenClaw."""
    programs = installed_host(host.absolute())
    with tempfile.TemporaryDirectory(prefix="openclaw-bench-") as folder:
        gateways = {name: Gateway(programs, Path(folder) / name, Model()) for name in ("nothing", "perdure")}
        with_nothing(gateways["nothing"])
        done = gateways["perdure"].perdure("openclaw", "install")
        assert done.returncode == 0, done.stderr
        config = json.loads(gateways["perdure"].config.read_text())
        config["plugins"]["entries"]["perdure"]["config"]["recallPlacement"] = placement
        gateways["perdure"].config.write_text(json.dumps(config))
        try:
            return measured(gateways, turns, history)
        finally:
            for gateway in gateways.values():
                gateway.stop()
                gateway.model.close()


main = program(bench)
