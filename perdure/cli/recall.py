"""Commands that recall, explain what was recalled, and measure how well it works."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perdure.api.evaluate import Evaluation, compare
from perdure.api.explain import INJECTED, Considered, Why, silence
from perdure.api.memory import Memory
from perdure.api.tool_arguments import Recall
from perdure.cli.operation import operation
from perdure.cli.options import arguments_option, project_option
from perdure.cli.output import SHORT_ID, Output, steps
from perdure.errors import InputError
from perdure.recall.receipt import Receipt
from perdure.text.pluralize import counted

SHOWN = 10
"""Candidates that did not come up and that `why` shows without --all."""
_file, _size = click.Path(path_type=Path), click.IntRange(1, 1000)
HEADER = ("id", "verdict", "score", "likely", "cosine", "words", "legs", "factors", "because", "text")


@operation(model=True, reads=True)
@click.option("--explain", is_flag=True, help="Also what did not come up, with scores, and how each leg did.")
@click.option("--why-not", "fact_id", metavar="ID", help="Say why this memory does not come up.")
@arguments_option("as_of tag", Recall)
@click.option("--expand", is_flag=True, help="Also ask in other words of the language model, if one is set.")
@project_option
def recall(
    memory: Memory, output: Output, query: str, explain: bool, fact_id: str | None, as_of: str | None, **asked: Any
) -> None:
    """Show what a prompt would bring up. Nothing is counted, and no receipt is left.

    It is of all that is yours; with --project what an agent would be shown in that repository.

    Example: perdure recall "Which database is staging?" --explain
    """
    kept: list[Receipt] = []
    found = memory.recall(query, as_of=as_of, receipt_to=kept.append, **asked)
    items = found.items if found else ()
    explained = memory.why(kept[0])
    reason = silence(explained)
    refusal = memory.why_not(fact_id, kept[0]) if fact_id else None
    answer: dict[str, Any] = {"items": items, "silence": reason, "why_not": refusal}
    if asked["expand"]:
        added = dict(explained.expansion or {"state": "off: no llm_endpoint is set", "wordings": []})
        answer["expansion"] = added
        output.line(f"Also asked: {'; '.join(added['wordings']) or '(nothing)'} [{added['state']}]")
    output.json(answer | ({"explained": explained.to_dict()} if explain else {}))
    for item in items:
        output.line(f"[{item.leg}/{item.category}] {item.text}")
    if reason:
        output.line(f"Silence: {reason}.")
    if refusal:
        output.line(f"{fact_id}: {refusal}")
    if explain:
        _explain(output, explained, everything=True)


@operation(reads=True)
@click.option("--all", "everything", is_flag=True, help=f"All that did not come up, not the best {SHOWN} only.")
def why(memory: Memory, output: Output, turn: str | None, everything: bool) -> None:
    """Show what came up in a turn and why, then what did not; without TURN in the last one.

    Example: perdure why --agent main
    """
    explained = memory.why(turn)
    reason = silence(explained)
    output.json(explained.to_dict() | {"sentence": reason})
    when = dt.datetime.fromtimestamp(explained.at).astimezone().isoformat(" ", "seconds")
    output.line(f"Turn {explained.turn[:SHORT_ID]}, {when}, {explained.tokens} tokens")
    output.line(f"Asked: {explained.query or '(nothing, or it was purged)'}")
    if reason:
        output.line(f"Silence: {reason}.")
    _explain(output, explained, everything)


@operation(name="why-not", reads=True)
@click.argument("fact_id", metavar="FACT")
@click.argument("turn", required=False)
def why_not(memory: Memory, output: Output, fact_id: str, turn: str | None) -> None:
    """Say why a memory did not come up in a turn; without TURN in the last one.

    Example: perdure why-not 1f0c9a3e
    """
    sentence = memory.why_not(fact_id, turn)
    output.json({"why_not": sentence})
    output.line(sentence)


@operation(name="eval", model=True, reads=True)
@click.option("--size", type=_size, default=50, show_default=True, help="Ask about so many memories at the most.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choice of memories.")
@click.option("--compare", "earlier", type=_file, help="A file with an earlier --json output to compare with.")
def eval_(memory: Memory, output: Output, size: int, seed: int, earlier: Path | None) -> int:
    """Measure recall with questions made from your own memories. Nothing is kept, changed or sent.

    Exit code 1: memories came up that you may not read.

    Example: perdure eval --json > before.json
    """
    before = None if earlier is None else _result(earlier)
    with steps("asking", quiet=output.as_json):
        result = memory.admin.evaluate(size, seed)
    after = result.to_dict()
    differences = [] if before is None else compare(before, after)
    changes = {name: [old, new] for name, old, new in differences}
    output.json(after | ({} if before is None else {"differences": changes}))
    _print(output, result)
    if before is not None:
        _print_differences(output, before, after, differences)
    return int(result.leaks > 0)


def _explain(output: Output, explained: Why, everything: bool) -> None:
    for text in explained.aliases:
        output.line(f"Other name: {text}")
    came = [each for each in explained.considered if each.verdict == INJECTED]
    left = [each for each in explained.considered if each.verdict != INJECTED]
    shown = left if everything else left[:SHOWN]
    for title, group in (("came up", came), ("did not come up", shown)):
        if group:
            output.rule(title)
            output.table(HEADER, [_row(each) for each in group])
    if len(shown) < len(left):
        output.line(f"{len(left) - len(shown)} more; --all shows them")
    legs = [f"{leg} {state['state']} ({1000 * state['seconds']:.1f} ms)" for leg, state in explained.legs.items()]
    if legs:
        floor = "" if explained.floor is None else f"; cosine needed: {explained.floor:.2f}"
        floor += "" if explained.threshold is None else f"; probability needed: {explained.threshold:.2f}"
        output.line("")
        output.line(f"Legs: {', '.join(legs)}; in all {1000 * explained.seconds:.1f} ms{floor}")


def _row(each: Considered) -> tuple[str, ...]:
    return (
        each.id[:SHORT_ID] if each.legs is not None else each.id,
        each.verdict,
        f"{each.score:.2f}",
        "" if each.probability is None else f"{each.probability:.2f}",
        "" if each.cosine is None else f"{each.cosine:.2f}",
        f"{each.coverage:.2f}" if each.legs is not None else "",
        _pairs(each.legs),
        _pairs(each.factors),
        _pairs(each.reasons),
        "(purged, or out of sight)" if each.gone else each.text,
    )


def _pairs(values: Mapping[str, float] | None) -> str:
    return " ".join(f"{name} {value:.2f}" for name, value in (values or {}).items())


def _print(output: Output, result: Evaluation) -> None:
    rows = [
        (kind, each.asked, *map(_share, (each.at_1, each.at_3, each.at_5, each.in_block)), _plain(each.tokens))
        for kind, each in result.kinds.items()
    ]
    output.line(f"{result.sampled} of {counted(result.facts, 'memory')}; model: {result.model or 'none, words alone'}")
    output.table(("questions", "asked", "first", "in 3", "in 5", "in block", "tokens"), rows)
    output.line(f"Silent on {_share(result.silence)} of {result.foreign} questions that have nothing to do with you.")
    output.line(f"{counted(result.leaks, 'memory')} of somebody else came up. {_plain(result.tokens)} tokens per turn.")
    if result.marks:
        output.line(f"{result.marks_right} of {result.marks} marks of yours hold: what should have come, and what not.")


def _print_differences(
    output: Output, before: Mapping[str, Any], after: Mapping[str, Any], differences: list[tuple[str, float, float]]
) -> None:
    output.rule("differences")
    if before.get("sample") != after["sample"]:
        output.line("Other memories were asked about than before: store, --size or --seed differ.")
    if before.get("model") != after["model"]:
        output.line(f"Model: {before.get('model')} before, {after['model']} now.")
    rows = [(name, f"{old:.3g}", f"{new:.3g}", f"{new - old:+.3g}") for name, old, new in differences]
    output.table(("", "before", "now", ""), rows, none="All numbers are the same.")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _result(file: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read as an earlier result: {error}") from None
    if not isinstance(value, Mapping):
        raise InputError(f"{file} is no result of `perdure eval --json`; write one with it first")
    return value
