"""What the place of the block costs: tokens that a prompt cache bills anew in each turn.

python -m bench placement --json

A scripted conversation of twenty turns, played by the shipped host, for each placement and for hosts that keep the
block in their history and such that do not. The request of a turn is the system prompt, the history and the new
message. A prompt cache knows the beginning that it has in common with the request before; what stands behind the first
character that differs is billed anew. Tokens are estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import fmean
from typing import Any

import click

from bench.memories import host_of, opened
from bench.program import program
from perdure.clock import ManualClock
from perdure.hooks.fake_host import Turn
from perdure.hooks.types import Placement
from perdure.text.tokens import estimate_tokens

SYSTEM = "You are a careful assistant. " * 60
FACTS = (
    "The staging database is called heron.",
    "The billing service runs on the host kestrel in Graz.",
    "My sister Anna has her birthday on the ninth of May.",
    "We deploy on Tuesdays, never on Fridays.",
    "I have a severe peanut allergy.",
)
PROMPTS = (
    "What is the staging database called?",
    "Which host does the billing service run on?",
    "When is my sister Anna's birthday?",
    "On which day do we deploy?",
    "Which allergy do I have?",
)
REPLY = "It is as you told me, and here is some more that an agent would say about it. " * 3
TURNS = 20


def play(placement: Placement, *, keeps_block: bool, embedder: str) -> list[int]:
    """Play the conversation; return the tokens that each turn bills anew."""
    clock = ManualClock()
    with opened(embedder=embedder, clock=clock, recall_placement=placement.value, auto_capture=False) as memory:
        for fact in FACTS:
            memory.store(fact)
        host = host_of(memory, keeps_block=keeps_block, now=clock.now)
        billed, before = [], ""
        for number in range(TURNS):
            history = [f"{message['role']}: {message['content']}" for message in host.messages]
            turn = host.turn(PROMPTS[number % len(PROMPTS)], REPLY)
            request = _request(history, turn)
            billed.append(estimate_tokens(request[common(before, request) :]))
            before = request
            clock.advance(60.0)
        host.stop()
    return billed


def _request(history: Sequence[str], turn: Turn) -> str:
    """Return what a model gets: a block for the system prompt stands in front of the history, any other behind."""
    system = [recall.block for recall in turn.recalls if recall.block and recall.placement is Placement.SYSTEM]
    newest = turn.user if system else turn.prompt_seen
    return "\n\n".join([SYSTEM, *system, *history, f"user: {newest}"])


def common(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@click.option("--embedder", default="auto", help="As the setting of this name.")
def bench(embedder: str) -> dict[str, Any]:
    """Measure what each placement costs."""
    figures: dict[str, Any] = {}
    for keeps_block, placement in product((True, False), Placement):
        billed = play(placement, keeps_block=keeps_block, embedder=embedder)
        name = f"{placement.value}, {'kept' if keeps_block else 'not kept'}"
        # The first turn is all new, wherever the block stands.
        figures[name] = {"per_turn": round(fmean(billed[1:]), 1), "last": billed[-1], "sum": sum(billed)}
    return figures


main = program(bench)
