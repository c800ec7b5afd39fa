"""Which weights fit Markdown notes: the notes of each day of LoCoMo, searched with the dataset's questions.

python -m bench notes locomo.json --json

What the dataset's authors noted of each session becomes memory/YYYY-MM-DD.md. A question counts as answered if the
note of a session that holds its evidence is the first file, or among the first three. Ages are left out of account.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from bench.locomo import TIME, located, questions, turns
from bench.memories import opened
from bench.program import program

WEIGHTS = ((0.7, 0.3), (0.6, 0.4), (0.5, 0.5), (0.4, 0.6), (0.3, 0.7))
"""Vector and keyword; together 1."""
AGELESS = 1e9


def write_notes(item: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Write the notes of a conversation; return each session's path as results show it."""
    (folder / "memory").mkdir(parents=True)
    paths = {}
    for key, noted in item["observation"].items():
        session = key.removesuffix("_observation")
        day = datetime.strptime(item["conversation"][f"{session}_date_time"], TIME)
        lines = [f"- {text}" for who in noted.values() for text, *_ in who]
        name = f"memory/{day:%Y-%m-%d}-{session}.md"
        (folder / name).write_text(f"# {day:%d %B %Y}\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
        paths[session] = name
    return paths


def measure(
    item: Mapping[str, Any], found: dict[tuple[float, float], list[tuple[float, float]]], embedder: str
) -> None:
    """Ask the questions of one conversation with each pair of weights."""
    said = turns(item["conversation"])
    sessions = {turn.id: turn.session for turn in said}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = write_notes(item, folder / "workspace")
        for vector, keyword in WEIGHTS:
            with opened(
                folder / "home", embedder=embedder, workspace=folder / "workspace",
                search={"half_life_days": AGELESS, "vector_weight": vector},
            ) as memory:  # fmt: skip
                memory.files.sync()
                memory.files.embed()
                for question in questions(item["qa"], sessions):
                    wanted = {paths[sessions[turn]] for turn in question.evidence if sessions[turn] in paths}
                    if wanted:
                        answer = memory.files.search(question.text, max_results=10, min_score=0.0)
                        ranked = list(dict.fromkeys(result.path for result in answer.results))
                        hits = (float(bool(wanted & set(ranked[:1]))), float(bool(wanted & set(ranked[:3]))))
                        found[vector, keyword].append(hits)


@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("--embedder", default="auto", help="As the setting of this name.")
def bench(data: Path | None, embedder: str) -> dict[str, Any]:
    """Measure the weights of memory files."""
    found: dict[tuple[float, float], list[tuple[float, float]]] = {weights: [] for weights in WEIGHTS}
    for item in json.loads(located(data).read_text(encoding="utf-8")):
        measure(item, found, embedder)
    return {
        f"{vector}/{keyword}": {
            f"first_{k}": round(100 * fmean(hit[at] for hit in hits), 1) for at, k in ((0, 1), (1, 3))
        }
        for (vector, keyword), hits in found.items()
    }


main = program(bench)
