"""Commands that recall, explain and evaluate."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from perdure.api.evaluate import Evaluation, compare
from perdure.api.explain import INJECTED, RECALLED, Considered, Why, silence
from perdure.api.memory import Memory
from perdure.api.tool_arguments import Recall
from perdure.cli.facts import GONE, text_of
from perdure.cli.operation import operation
from perdure.cli.options import HERE, arguments_option, project_option
from perdure.cli.output import SHORT_ID, Output, steps
from perdure.errors import InputError
from perdure.hooks.types import Opening
from perdure.recall.receipt import Receipt
from perdure.store.search import AS_SET, FTS5
from perdure.text.pluralize import counted

SHOWN = 10
"""Rejected candidates that `why` shows without --all."""
_file, _size = click.Path(path_type=Path), click.IntRange(1, 1000)
HEADER = ("id", "verdict", "score", "probability", "cosine", "words", "retrievers", "factors", "reasons", "text")


@operation(model=True, reads=True)
@click.option("--explain", is_flag=True, help="Also show rejected memories, scores and retrievers.")
@click.option("--why-not", "fact_id", metavar="ID", help="Explain why this memory is not recalled.")
@arguments_option("as_of tag", Recall)
@click.option(
    "--expand",
    is_flag=True,
    help="Also search for rewordings of the query by the language model, if one is configured.",
)
@project_option
def recall(
    memory: Memory, output: Output, query: str, explain: bool, fact_id: str | None, as_of: str | None, **asked: Any
) -> None:
    """Show what a prompt would recall, without recording it as a use.

    `perdure why` explains the result. All your memories are considered; with --project, only those an agent would get
    in that repository.

    Example: perdure recall "Which database is staging?" --explain
    """
    kept: list[Receipt] = []
    found = memory.recall(query, as_of=as_of, receipt_to=kept.append, **asked)
    items = found.items if found else ()
    memory.turns.looked(kept[0])
    explained = memory.why(kept[0])
    reason = silence(explained)
    refusal = memory.why_not(fact_id, kept[0]) if fact_id else None
    answer: dict[str, Any] = {"items": items, "silence": reason, "why_not": refusal}
    if asked["expand"]:
        added = dict(explained.expansion or {"state": "off: llm_endpoint is not set", "wordings": []})
        answer["expansion"] = added
        output.line(f"Rewordings: {'; '.join(added['wordings']) or 'none'} [{added['state']}]")
    output.json(answer | ({"explained": explained.to_dict()} if explain else {}))
    for item in items:
        output.line(f"[{item.leg}/{item.category}] {item.text}")
    if reason:
        output.line(f"Nothing recalled: {reason}.")
    if fact_id and refusal:
        _print_why_not(output, memory, fact_id, refusal)
    if explain:
        _explain(output, explained, everything=True)


def _where(context: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Return the named repository; for a host, the current folder's."""
    from perdure.engine.repository import project_of

    here = context.params.get("host") and project_of(Path.cwd())
    return name or (HERE if here else None)


@operation(model=True, reads=True)
@click.option(
    "--project",
    metavar="NAME",
    callback=_where,
    help="Only this repository; `here`, the default with --host, means the current folder's.",
)
@click.option(
    "--host",
    is_eager=True,
    help="As this host would show it, such as claude-code: without private memories, and without what its "
    "own files already say.",
)
def opening(memory: Memory, output: Output, host: str | None) -> None:
    """Show what a session would start with.

    Nothing is recorded as a use. All your memories are considered; with --project or --host, only those an agent would
    get in that repository.

    Example: perdure opening --host claude-code
    """
    found = memory.turns.opening(host=host, folder=str(Path.cwd()) if host else None) or Opening("")
    output.json({"block": found.block, "tokens": found.tokens, "items": found.items, "more": found.more})
    for item in found.items:
        output.line(f"[{item.why}] {item.text}")
    output.line(found.more or ("" if found.items else "A session would start without any memories."))


@operation(reads=True)
@click.option("--all", "everything", is_flag=True, help=f"Show all rejected memories, not only the best {SHOWN}.")
def why(memory: Memory, output: Output, turn: str | None, everything: bool) -> None:
    """Explain what a turn recalled and rejected.

    Without TURN, explain the last turn or `perdure recall`.

    Example: perdure why --agent main
    """
    explained = memory.why(turn)
    reason = silence(explained)
    output.json(explained.to_dict() | {"sentence": reason})
    when = dt.datetime.fromtimestamp(explained.at).astimezone().isoformat(" ", "seconds")
    output.line(f"Turn {explained.turn[:SHORT_ID]}, {when}, {explained.tokens} tokens")
    output.line(f"Prompt: {explained.query or '(empty or purged)'}")
    if reason:
        output.line(f"Nothing recalled: {reason}.")
    _explain(output, explained, everything)


@operation(name="why-not", reads=True)
@click.argument("fact_id", metavar="ID")
@click.argument("turn", required=False)
def why_not(memory: Memory, output: Output, fact_id: str, turn: str | None) -> None:
    """Explain why a turn did not recall a memory.

    Without TURN, explain the last one.

    Example: perdure why-not 1f0c9a3e
    """
    sentence = memory.why_not(fact_id, turn)
    output.json({"why_not": sentence})
    _print_why_not(output, memory, fact_id, sentence)


@operation(name="eval", model=True, reads=True)
@click.option(
    "--size", type=_size, default=50, show_default=True, help="Maximum number of memories to make questions from."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--compare", "earlier", type=_file, help="Earlier --json output to compare with.")
def eval_(memory: Memory, output: Output, size: int, seed: int, earlier: Path | None) -> int:
    """Evaluate recall with questions made from your own memories.

    Nothing is stored, changed or sent. Exit code 1: other users' memories leaked.

    Example: perdure eval --json > before.json
    """
    before = None if earlier is None else _result(earlier)
    with steps("evaluating", quiet=output.as_json):
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
        output.line(f"Alias: {text}")
    came = [each for each in explained.considered if each.verdict == INJECTED]
    left = [each for each in explained.considered if each.verdict != INJECTED]
    shown = left if everything else left[:SHOWN]
    for title, group in (("recalled", came), ("rejected", shown)):
        if group:
            output.rule(title)
            output.table(HEADER, [_row(each) for each in group])
    if len(shown) < len(left):
        output.line(f"{len(left) - len(shown)} more; show them with --all")
    legs = [
        f"{leg} {state['state']}{_index(state)} ({1000 * state['seconds']:.1f} ms)"
        for leg, state in explained.legs.items()
    ]
    if legs:
        floor = "" if explained.floor is None else f"; minimum cosine: {explained.floor:.2f}"
        floor += "" if explained.threshold is None else f"; minimum probability: {explained.threshold:.2f}"
        output.line("")
        output.line(f"Retrievers: {', '.join(legs)}; total {1000 * explained.seconds:.1f} ms{floor}")


def _index(leg: Mapping[str, Any]) -> str:
    """Return which index a retriever used, if not the default or configured one."""
    index, why = leg.get("index", FTS5), leg.get("why", AS_SET)
    reason = "" if why == AS_SET else f": {why}"
    return f", by {index}{reason}" if reason or index != FTS5 else ""


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
        ", ".join(filter(None, (f"matched its trigger: {each.trigger}" if each.trigger else "", _pairs(each.reasons)))),
        GONE if each.gone else each.text,
    )


def _print_why_not(output: Output, memory: Memory, fact_id: str, sentence: str) -> None:
    output.line(f"{fact_id[:SHORT_ID]} {text_of(memory, fact_id)}")
    output.line(f"{'Recalled' if sentence.startswith(RECALLED) else 'Not recalled'}: {sentence}.")


def _pairs(values: Mapping[str, float] | None) -> str:
    return " ".join(f"{name} {value:.2f}" for name, value in (values or {}).items())


def _print(output: Output, result: Evaluation) -> None:
    rows = [
        (kind, each.asked, *map(_share, (each.at_1, each.at_3, each.at_5, each.in_block)), _plain(each.tokens))
        for kind, each in result.kinds.items()
    ]
    output.line(
        f"Sample: {result.sampled} of {counted(result.facts, 'memory')}; model: {result.model or 'none, keywords only'}"
    )
    output.table(("questions", "asked", "top 1", "top 3", "top 5", "in block", "tokens"), rows)
    output.line(
        f"Recalled nothing for {_share(result.silence)} of "
        f"{counted(result.foreign, 'unrelated question')}, as it should."
    )
    output.line(f"Leaks from other users: {result.leaks}. Tokens per turn: {_plain(result.tokens)}.")
    if result.marks:
        output.line(f"Recall now agrees with {result.marks_right} of your {counted(result.marks, 'mark')}.")


def _print_differences(
    output: Output, before: Mapping[str, Any], after: Mapping[str, Any], differences: list[tuple[str, float, float]]
) -> None:
    output.rule("differences")
    if before.get("sample") != after["sample"]:
        output.line("The samples differ: store, --size or --seed changed.")
    if before.get("model") != after["model"]:
        output.line(f"Model: {before.get('model')} before, {after['model']} now.")
    rows = [(name, f"{old:.3g}", f"{new:.3g}", f"{new - old:+.3g}") for name, old, new in differences]
    output.table(("", "before", "now", ""), rows, none="No differences.")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _plain(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def _result(file: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {file} as an earlier result: {error}") from None
    if not isinstance(value, Mapping):
        raise InputError(f"{file} is not a result of `perdure eval --json`; write one first")
    return value
