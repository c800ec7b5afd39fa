"""What the product makes of labelled data: recall on stores and conversations, capture, changes, whole days.

python -m bench labelled training/data/development --json [--only stores]

The folder holds folders of the kinds that `training.forms` describes. Figures:

stores, conversations: precision (of what came up, the share that helps), recall (of what helps, the share that came
up), silence (of the prompts that nothing helps, the share that got nothing), and of each kind of prompt the recall or
the silence, and by language both. messages: of the sentences that were kept the share that should be, the reverse, and
by language the F1. pairs: of the replacements and withdrawals those that were done to the right memory; memories that
were replaced though they still hold; new statements that were swallowed though they say something new. days: the same
over whole sessions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from bench.days import PATIENCE, played
from bench.locomo import Turn as Line
from bench.locomo import ask, index, place_of, places
from bench.measuring import Counts, share
from bench.memories import brought, changed, live, opened
from bench.program import program
from perdure.hooks.types import TurnContext
from perdure.store.fact import Fact
from training.alike import SAME, overlap
from training.check import load
from training.forms import NEEDING, Conversation, Day, File, Messages, Pairs, Prompt, Store

TOP = 5
"""Results of a search of past conversations that are looked at."""


@dataclass
class Recalled(Counts):
    """What came up for prompts, by their kind and language as well."""

    kinds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    languages: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def count(self, prompt: Prompt, found: set[str], lang: str) -> None:
        """Count a prompt and the ids of what came up for it."""
        needs = set(prompt.needs)
        self.add(found, needs)
        well = len(found & needs) / len(needs) if needs else float(not found)
        self.languages[lang]["recall" if needs else "silence"].append(well)
        self.kinds["idle" if prompt.kind in NEEDING and not needs else prompt.kind].append(well)

    def figures(self) -> dict[str, Any]:
        """Return all figures, 0 to 1."""
        return {
            "prompts": sum(map(len, self.kinds.values())),
            **super().figures(),
            "kinds": _means(self.kinds),
            "languages": {lang: _means(given) for lang, given in sorted(self.languages.items())},
        }


def of_stores(files: Sequence[Store]) -> dict[str, Any]:
    """Store each file's memories and ask its prompts, each in a session of its own."""
    recalled = Recalled()
    for file in files:
        names: dict[str, set[str]] = defaultdict(set)
        with opened() as memory:
            for known in file.memories:
                names[memory.store(known.text).id].add(known.id)
            for number, prompt in enumerate(file.prompts):
                items = brought(memory, prompt.text, f"{file.store} {number}")
                recalled.count(prompt, {name for item in items for name in names.get(item.id, {item.id})}, file.lang)
    return recalled.figures()


def of_conversations(files: Sequence[Conversation]) -> dict[str, Any]:
    """Record each conversation, a session for each day, and ask its prompts."""
    recalled, searched = Recalled(), Recalled()
    for file in files:
        said = list(_lines(file))
        by_place = places(said)
        with opened() as memory:
            index(memory, said)
            for number, prompt in enumerate(file.prompts):
                given = [place_of(item.id) for item in brought(memory, prompt.text, f"later {number}")]
                ids = {by_place[place].id if place in by_place else str(place) for place in given}
                recalled.count(prompt, ids, file.lang)
                searched.count(prompt, {turn.id for turn in ask(memory, said, prompt.text, TOP)}, file.lang)
    return {**recalled.figures(), f"searched_recall_at_{TOP}": searched.figures()["recall"]}


def of_messages(files: Sequence[Messages]) -> dict[str, Any]:
    """Capture each message after its two turns, in a session of its own."""
    items = [(item, item.lang or file.lang) for file in files for item in file.items]
    with opened(
        compare={"classify": False, "exact": False, "normalised": False}, record_sessions=False, embedder="none",
    ) as memory:  # fmt: skip
        for whole in (False, True):
            for item, _ in items:
                messages = [{"role": turn.role, "content": turn.text} for turn in item.before]
                messages += [{"role": "user", "content": item.text}] if whole else []
                if messages:
                    memory.turns.after(messages, True, TurnContext(session_id=item.id, host="bench"))
            memory.settle(PATIENCE)
            if not whole:
                earlier = {fact.id for fact in live(memory)}
        kept: dict[str, list[Fact]] = defaultdict(list)
        for fact in live(memory):
            if fact.id not in earlier:
                kept[fact.provenance_session or ""].append(fact)
    right, wanted, junk = Counter[str](), Counter[str](), Counter[str]()
    filed, lasting = Counter[bool](), Counter[bool]()
    for item, lang in items:
        labels = [sentence for sentence in item.sentences if sentence.keep]
        wanted[lang] += len(labels)
        for fact in kept[item.id]:
            label = max(item.sentences, key=lambda sentence: overlap(fact.text, sentence.text))
            junk[lang] += not label.keep
        for label in labels:
            fact_of = next((fact for fact in kept[item.id] if overlap(fact.text, label.text) >= SAME), None)
            right[lang] += fact_of is not None
            if fact_of is not None:
                filed[fact_of.category == label.category] += 1
                lasting[(fact_of.expires_at is None and fact_of.decay_freeze_until is None) == bool(label.lasting)] += 1
    return {
        "messages": len(items),
        **_kept(right.total(), junk.total(), wanted.total()),
        "missed": wanted.total() - right.total(),
        "junk": junk.total(),
        "category": share(filed[True], filed.total()),
        "lasting": share(lasting[True], lasting.total()),
        "languages": {lang: _kept(right[lang], junk[lang], wanted[lang])["f1"] for lang in sorted(wanted)},
    }


def of_pairs(files: Sequence[Pairs]) -> dict[str, Any]:
    """Store what was known and then the new statement; see what the store holds afterwards."""
    done: Counter[tuple[str, str]] = Counter()
    items = [item for file in files for item in file.items]
    with opened(scopes=[f"project:{item.id}" for item in items]) as memory:
        for item in items:
            scope = f"project:{item.id}"
            known, gone, come = changed(memory, scope, item.known, item.new)
            target = {known[item.target]} if item.target is not None else set()
            found = ("right" if gone == target else "wrong") if gone else "beside" if come else "swallowed"
            done[item.relation, found] += 1
    totals = Counter(item.relation for item in items)
    changes = totals["replaces"] + totals["withdraws"]
    still = ("unrelated", "adds", "same", "contradicts")
    return {
        "pairs": len(items),
        "changes_recognised": share(done["replaces", "right"] + done["withdraws", "right"], changes),
        "replaced_though_true": sum(done[relation, found] for relation in still for found in ("right", "wrong")),
        "wrong_target": done["replaces", "wrong"] + done["withdraws", "wrong"],
        "swallowed_though_new": sum(done[relation, "swallowed"] for relation in totals if relation != "same"),
        "same_recognised": share(done["same", "swallowed"], totals["same"]),
    }


def of_days(files: Sequence[Day]) -> dict[str, Any]:
    """Play each day as a host would, and compare what is kept and recalled with the labels."""
    figures: Counter[str] = Counter()
    for file in files:
        _play(file, figures)
    return {
        "days": len(files),
        **_kept(figures["kept"], figures["junk"], figures["to keep"]),
        "never": figures["never"],
        "changes_recognised": share(figures["replaced"], figures["to replace"]),
        "needs_recalled": share(figures["recalled"], figures["needed"]),
        "silence": share(figures["quiet"], figures["idle"]),
    }


def _play(file: Day, figures: Counter[str]) -> None:
    turns, every = played(file)
    labels = {kept.id: kept.text for turn, *_ in turns for kept in turn.keep}
    gone = {name for turn, *_ in turns for kept in turn.keep for name in (*kept.replaces, *kept.withdraws)}
    never = [words.casefold() for turn, *_ in turns for words in turn.never]
    for turn, texts, _ in turns:
        figures["needed"] += len(turn.needs)
        figures["recalled"] += sum(any(overlap(text, labels[name]) >= SAME for text in texts) for name in turn.needs)
        if turn.owner and not turn.needs:
            figures["idle"] += 1
            figures["quiet"] += not texts
    texts = [fact.text for fact in every]
    found = {name for name, text in labels.items() if any(overlap(text, other) >= SAME for other in texts)}
    alive = [fact.text for fact in every if fact.superseded_at is None]
    figures["to keep"] += len(labels)
    figures["kept"] += len(found)
    figures["junk"] += sum(all(overlap(text, label) < SAME for label in labels.values()) for text in texts)
    figures["never"] += sum(any(words in text.casefold() for words in never) for text in texts)
    figures["to replace"] += len(gone)
    figures["replaced"] += sum(name in found and not any(labels[name] in text for text in alive) for name in gone)


def _lines(file: Conversation) -> Iterator[Line]:
    day = 0
    for turn in file.turns:
        day += turn.date is not None
        message = {"role": turn.role, "content": [{"type": "text", "text": turn.text}]}
        yield Line(turn.id, f"session_{day}", message | ({"name": turn.name} if turn.name else {}))


def _kept(right: int, junk: int, wanted: int) -> dict[str, float]:
    precision, recall = share(right, right + junk), share(right, wanted)
    both = precision + recall
    return {"precision": precision, "recall": recall, "f1": round(2 * precision * recall / both, 3) if both else 0.0}


def _means(given: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: share(sum(values), len(values)) for name, values in sorted(given.items())}


MEASURES: Mapping[str, tuple[type[File], Callable[[Any], dict[str, Any]]]] = {
    "stores": (Store, of_stores), "conversations": (Conversation, of_conversations),
    "messages": (Messages, of_messages), "pairs": (Pairs, of_pairs), "days": (Day, of_days),
}  # fmt: skip


@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--only", type=click.Choice(list(MEASURES)), multiple=True, default=list(MEASURES), help="Only this kind."
)
def bench(folder: Path, only: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Measure the product on each kind of labelled data that FOLDER holds."""
    found = load(folder)
    if found.wrong:
        raise click.ClickException("; ".join(found.wrong))
    result = {}
    for kind in only:
        form, figures = MEASURES[kind]
        files = [file for file in found.files.values() if isinstance(file, form)]
        if files:
            result[kind] = figures(files)
    return result


main = program(bench)
