"""Judges the encoder and the gate on a split: precision, recall and silence at the three named points.

python -m training.evaluate SPLIT [--model FILE] [--gate FILE] [--base FILE] [--size N] [--triggers N] [--json]

SPLIT: development while one works; untouched once, at the end: figures alone are printed, no case. All figures stand at
the rate of life (65 % of prompts need nothing). `--size` fills each store up with memories of others of its language:
whoever asks is not their owner, so a share of what they bring is noise by definition. `--triggers` judges the stores
that have triggers once more, with so many a memory at each share of memories that have any. `--base` names another ONNX
file, for the average precision of its cosine alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from bench.program import lines
from perdure.embed.catalogue import RECALL
from perdure.recall.gate import FILE, LearnedGate, triggered_gate
from training.agreement import figures as agreement
from training.check import SPLITS
from training.examples import Example, digest, examples, texts_of
from training.fit import SHARES, Rows, answers, by, rows_of
from training.measures import Answer, at, ranked
from training.vectors import cached

OUT = Path(__file__).parent / "out"


def judged(given: Sequence[Rows], gate: LearnedGate, triggered: LearnedGate | None = None) -> dict[str, Any]:
    """Return all figures of prompts under a gate, and under another for memories that have triggers."""
    found = answers(gate, given, triggered)
    return {
        "prompts": len(given),
        "average precision": {
            "cosine": round(ranked(by(given, "cosine")), 3),
            "above the background": round(ranked(by(given, "above")), 3),
            "gate": round(ranked(found), 3),
        },
        **{point: _plain(at(found, threshold)) for point, threshold in gate.points.items()},
        "by kind": {kind: _points(some, gate) for kind, some in _grouped(found, "kind")},
        "by language": {lang: _points(some, gate) for lang, some in _grouped(found, "lang")},
    }


def _cache(model: Path) -> Path:
    """Return where the vectors of a model are kept: never beside the shipped one."""
    OUT.mkdir(exist_ok=True)
    return OUT / f"{model.stem}.npz"


def _points(found: Sequence[Answer], gate: LearnedGate) -> dict[str, Any]:
    """Return recall where something is needed, silence where nothing is, at each point."""
    wanted = [each for each in found if each.wanted]
    idle = [each for each in found if not each.wanted]
    points: dict[str, Any] = {"prompts": len(found)}
    for point, threshold in gate.points.items():
        points[point] = {
            **({"recall": round(at(wanted, threshold).recall, 3)} if wanted else {}),
            **({"silence": round(at(idle, threshold).silence, 3)} if idle else {}),
        }
    return points


def _grouped(found: Iterable[Answer], name: str) -> list[tuple[str, list[Answer]]]:
    groups: dict[str, list[Answer]] = defaultdict(list)
    for each in found:
        groups[getattr(each, name)].append(each)
    return sorted(groups.items())


def _plain(found: Any) -> dict[str, float]:
    return {name: round(getattr(found, name), 3) for name in ("precision", "recall", "silence", "shown")}


def rows_by_manner(given: Sequence[Example], model: Path, size: int = 0) -> dict[str, list[Rows]]:
    """Return the features of stores and of conversations."""
    vectors = cached(texts_of(given), model, _cache(model))
    some = [each for each in given if not (size and each.passages)]
    rows = rows_of(some, vectors, more=some if size else (), size=size)
    found = {
        "stores": [row for row in rows if not row.passages],
        "conversations": [row for row in rows if row.passages],
    }
    return {name: some for name, some in found.items() if some}


@click.command()
@click.argument("split", type=click.Choice(SPLITS))
@click.option(
    "--model", type=click.Path(exists=True, path_type=Path), default=RECALL.data_path,
    help="The encoder as an ONNX file; by default the shipped one.",
)  # fmt: skip
@click.option("--gate", "gate_path", type=click.Path(exists=True, path_type=Path), default=FILE)
@click.option("--base", type=click.Path(exists=True, path_type=Path), help="The published encoder as an ONNX file.")
@click.option("--size", default=0, help="Memories to which each store is filled up with those of others.")
@click.option("--triggers", "most", default=0, help="Triggers of a memory that are also tried.")
@click.option("--json", "as_json", is_flag=True, help="Print one object and nothing else.")
def main(
    split: str, model: Path, gate_path: Path, base: Path | None, size: int, most: int, as_json: bool
) -> None:  # fmt: skip
    """Judge a model on a split."""
    given, gate = examples(split), LearnedGate.of(json.loads(gate_path.read_text(encoding="utf-8")))
    found: dict[str, Any] = {
        "data": digest(given),
        "points": gate.points,
        "two people agree": agreement()["a memory helps"],
    }
    for manner, rows in rows_by_manner(given, model, size).items():
        found[manner] = judged(rows, gate)
    aimed = [each for each in given if each.triggers]
    for share in (0.0, *SHARES) if most else ():
        vectors = cached(texts_of(aimed), model, _cache(model))
        rows = rows_of(aimed, vectors, more=aimed if size else (), size=size, share=share, most=most)
        found[f"stores with triggers, {share:.0%}"] = judged(rows, gate, triggered_gate())
    if base:
        for manner, rows in rows_by_manner(given, base).items():
            found[manner]["average precision"]["cosine, published"] = round(ranked(by(rows, "cosine")), 3)
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else "\n".join(lines(found)))


if __name__ == "__main__":
    main()
