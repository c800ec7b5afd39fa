"""What becomes of whole days with an assistant: what is kept, replaced and recalled, by the rules and by the heads.

python -m bench days [FOLDER] [--requests OUT] [--answers IN] --json

FOLDER holds day scripts of the form that `training.forms` describes; by default training/data/development/days. Each is
played twice as a host would, with the rules alone deciding what is kept (`rules`) and with the heads (`heads`), and
compared with the labels that were written with it. Of what is to be kept: kept, missed, wrongly filed (under another
category), wrongly replaced (no longer true by the store, though it lasts and no label says so). junk: held and labelled
nowhere. changes: what a label says is over or replaced, and taken: what of it no longer holds by the store. Of the
prompts that need something of an earlier session: right (all of it came up), partial (some of it), missed; idle:
prompts that need nothing, and quiet: those of them that got nothing. needs: what these need in all; met: what of it
stands in the opening of the session, or in a block since.

With --requests the librarian's requests are written to OUT. With --answers, too, the answers in IN to the requests that
stand in OUT take effect (`librarian`), and what became of their operations is told (`operations`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from bench.librarian import Answering, Rest, written
from bench.memories import opened
from bench.program import program
from perdure.clock import ManualClock
from perdure.hooks.types import TurnContext
from perdure.store.fact import Fact
from perdure.store.listing import MAX_LIMIT, Filter
from training.alike import SAME, nearer, overlap
from training.check import DATA, load
from training.forms import Day, Kept, Turn

FIGURES = (
    "kept", "missed", "junk", "wrongly filed", "wrongly replaced",
    "changes", "taken", "right", "partial", "missed prompts", "quiet", "idle", "needs", "met",
)  # fmt: skip
PATIENCE = 600.0
"""Seconds that the capture of a turn may take."""
MORNING = 600.0
"""Seconds from midnight to the first turn of a session."""
TURN = 60.0
"""Seconds from one turn to the next."""


IDLE = 600.0
"""Seconds without a turn after which a session is at rest."""


Played = tuple[Turn, list[str], list[str]]
"""A turn, what came up for it, and what its session has been shown by then."""


def played(day: Day, rest: Rest | None = None, **settings: Any) -> tuple[list[Played], list[Fact]]:
    """Play a day as a host would; return its turns with what the owner was shown, and all that is held then.

    `rest` is called with the turns since, at the end of a session and at the latest after twenty.
    """
    turns = []
    clock = ManualClock()
    with opened(clock=clock, **settings) as memory:
        for session in day.sessions:
            clock.set(datetime.fromisoformat(session.date).timestamp() + MORNING)
            history: list[dict[str, Any]] = []
            context = TurnContext(session_id=f"{day.day} {session.session}", host="bench", keeps_block=True)
            opening = memory.turns.opening(context)
            shown = [item.text for item in (opening.items if opening else ())]
            for turn in session.turns:
                recall = memory.turns.before(turn.user, context) if turn.owner else None
                texts = [item.text for item in (recall.items if recall else ())]
                shown = [*shown, *texts]
                turns.append((turn, texts, shown))
                note = {} if turn.owner else {"__openclaw": {"senderIsOwner": False}}
                history += [
                    {"role": "user", "content": turn.user, **note},
                    {"role": "assistant", "content": turn.assistant},
                ]
                memory.turns.after(history, True, context)
                memory.settle(PATIENCE)
                if rest is not None and turn.owner:
                    rest.heard(memory, history[-2:], context)
                clock.advance(TURN)
            if rest is not None:
                clock.advance(IDLE)
                rest(memory)
        return turns, list(memory.admin.list(Filter(), limit=MAX_LIMIT, include_superseded=True))


def play(day: Day, *, learnt: bool, **settings: Any) -> Counter[str]:
    """Play a day, the heads deciding what is kept or the rules alone; return the figures."""
    return judged(*played(day, capture_learnt=learnt, **settings))


def judged(turns: Sequence[Played], every: Sequence[Fact]) -> Counter[str]:
    """Return the figures of a played day."""
    labels = {kept.id: kept for turn, *_ in turns for kept in turn.keep}
    prompts = (asked(turn, texts, labels, shown) for turn, texts, shown in turns if turn.owner)
    return sum(prompts, kept(every, labels.values()))


def asked(turn: Turn, texts: Sequence[str], labels: dict[str, Kept], shown: Sequence[str] = ()) -> Counter[str]:
    """Return what is to be counted of a prompt, of what came up for it and what its session has been shown by then."""
    if not turn.needs:
        return Counter({"idle": 1, "quiet": not texts})
    found, met = (
        sum(any(overlap(text, labels[name].text) >= SAME for text in given) for name in turn.needs)
        for given in (texts, shown)
    )
    way = "right" if found == len(turn.needs) else "partial" if found else "missed prompts"
    return Counter({way: 1, "needs": len(turn.needs), "met": met})


def kept(every: Sequence[Fact], labels: Iterable[Kept]) -> Counter[str]:
    """Return what is to be counted of what the store holds in the end."""
    figures: Counter[str] = Counter()
    wanted = list(labels)
    gone = {name: label for label in wanted for name in (*label.replaces, *label.withdraws)}
    for label in wanted:
        found = [fact for fact in every if overlap(fact.text, label.text) >= SAME and not _tells(fact, label, gone)]
        figures["kept" if found else "missed"] += 1
        figures["wrongly filed"] += bool(found) and all(fact.category != label.category for fact in found)
        replaced = bool(found) and all(fact.superseded_at is not None for fact in found)
        figures["wrongly replaced"] += replaced and label.lasting and label.id not in gone
        figures["taken"] += replaced and label.id in gone
    figures["changes"] = len(gone)
    held = [fact for fact in every if fact.superseded_at is None and fact.review_state == "approved"]
    figures["junk"] = sum(all(overlap(fact.text, label.text) < SAME for label in wanted) for fact in held)
    return figures


def _tells(fact: Fact, label: Kept, gone: Mapping[str, Kept]) -> bool:
    """Return whether a memory says that what a label says is over, in its words: it is no memory of that itself."""
    over = gone.get(label.id)
    return over is not None and nearer(fact.text, over.text, label.text)


def measure(days: Sequence[Day]) -> dict[str, dict[str, int]]:
    """Return the figures of the rules and of the heads, over all days."""
    found = {}
    for name, learnt in (("rules", False), ("heads", True)):
        total = sum((play(day, learnt=learnt) for day in days), Counter[str]())
        found[name] = {figure: total[figure] for figure in FIGURES}
    return found


@click.option(
    "--answers", type=click.Path(exists=True, path_type=Path), help="Let the answers in this folder take effect."
)
@click.option("--requests", type=click.Path(path_type=Path), help="Write the librarian's requests into this folder.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
def bench(folder: Path | None, requests: Path | None, answers: Path | None) -> dict[str, Any]:
    """Play days with an assistant, and compare what becomes of them with their labels."""
    chosen = folder or DATA / "development" / "days"
    found = load(chosen.parent)
    days = [file for path, file in found.files.items() if isinstance(file, Day) and path.parent.name == chosen.name]
    if found.wrong or not days:
        raise click.ClickException("; ".join(found.wrong) or f"{chosen} holds no day script")
    if answers is not None:
        if requests is None:
            raise click.UsageError("--answers needs --requests: the folder of those that they answer")
        return {"days": len(days), **answered(days, requests, answers)}
    if requests is not None:
        return {"days": len(days), "requests": sum(asking(day, requests / day.day) for day in days)}
    return {"days": len(days), **measure(days)}


def answered(days: Sequence[Day], requests: Path, answers: Path, **settings: Any) -> dict[str, dict[str, int]]:
    """Return the figures of days of which recorded answers take effect, and what became of the answers."""
    figures, operations = Counter[str](), Counter[str]()
    for day in days:
        rest = Answering(names=written(requests / day.day), answers=answers / day.day)
        figures += judged(*played(day, rest, **settings))
        operations += rest.figures
    return {"librarian": {figure: figures[figure] for figure in FIGURES}, "operations": dict(operations)}


def asking(day: Day, folder: Path, **settings: Any) -> int:
    """Write down what the librarian would be asked about a day; return how many requests that is."""
    rest = Rest()
    played(day, rest, **settings)
    rest.write(folder)
    return len(rest.requests)


main = program(bench)
