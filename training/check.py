"""Proves that the labelled data has its form, its splits and its hashes, and that no sentence stands twice.

python -m training.check [FOLDER] [--json]

FOLDER holds splits (train, development, untouched), each with a folder a kind. It may also be a split or a folder
of one kind: then only the form and the sentences are looked at. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from training.forms import (
    FORMS,
    Coding,
    Conversation,
    Day,
    Families,
    File,
    Life,
    Messages,
    Pairs,
    Store,
    Topics,
    Triggers,
    parsed,
)

DATA = Path(__file__).parent / "data"
SPLITS = ("train", "development", "untouched")
SUMS = "SHA256SUMS"
WORDS = 7
"""Shorter sentences ("Thanks, that helps a lot.") may stand twice, as they do in life."""
SIGNS = 12
"""The same for scripts without spaces."""
SHINGLE = 3
NEAR = 0.7
"""From which share of their runs of three words in common (Jaccard) on two sentences are one."""
COMMON = 30
"""A run of words that stands in more sentences than that is a turn of phrase, and finds no twins."""


@dataclass(slots=True)
class Found:
    """What a folder holds: its files by path, and what is wrong, a line each."""

    files: dict[Path, File] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def load(folder: Path) -> Found:
    """Read every file below a folder that lies in a folder of a kind."""
    found = Found()
    for path in sorted(folder.rglob("*.json")):
        if path.parent.name not in FORMS:
            continue
        try:
            found.files[path] = parsed(path.parent.name, json.loads(path.read_text(encoding="utf-8")))
        except (ValidationError, ValueError) as error:
            found.wrong.append(f"{path.relative_to(folder)}: {_plain(error)}")
            continue
        name = next(iter(FORMS[path.parent.name].model_fields))
        if getattr(found.files[path], name) != path.stem:
            found.wrong.append(f"{path.relative_to(folder)}: names itself otherwise")
    return found


def counts(files: Mapping[Path, File]) -> dict[str, dict[str, dict[str, int]]]:
    """Return numbers by split, kind and what is counted."""
    table: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for path, file in files.items():
        table[path.parent.parent.name][path.parent.name].update(_counted(file))
    return {split: {kind: dict(numbers) for kind, numbers in kinds.items()} for split, kinds in table.items()}


def shared_writers(files: Mapping[Path, File]) -> list[str]:
    """Return a line for each writer who stands in more than one split; who only gave topics wrote nothing."""
    splits = defaultdict(set)
    for path, file in files.items():
        if not isinstance(file, Topics):
            splits[path.name.split("-")[0]].add(path.parent.parent.name)
    return [
        f"writer {name} is in {', '.join(sorted(where))}" for name, where in sorted(splits.items()) if len(where) > 1
    ]


def strangers(files: Mapping[Path, File]) -> list[str]:
    """Return a line for each file of labels that does not fit the memories of a store of its split."""
    stores = {(path.parent.parent.name, path.stem): file
              for path, file in files.items() if isinstance(file, Store | Life)}  # fmt: skip
    lines = []
    for path, file in files.items():
        if not isinstance(file, Triggers | Topics):
            continue
        place = f"{path.parent.parent.name}/{path.parent.name}/{path.name}"
        store = stores.get((path.parent.parent.name, file.store))
        if store is None:
            lines.append(f"{place}: {file.store} is no store of its split")
            continue
        there = {memory.id for memory in store.memories}
        lines += [f"{place}: {store.store} has no memory {name}" for name in sorted(file.items.keys() - there)]
        lines += [f"{place}: says nothing of {name}" for name in sorted(there - file.items.keys())]
        if file.lang != store.lang:
            lines.append(f"{place}: is in {file.lang}, its store in {store.lang}")
    return lines


def sums(split: Path) -> str:
    """Return the lines of the hashes of a split's files, as `sha256sum` writes them."""
    paths = sorted(path for path in split.rglob("*.json"))
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(split).as_posix()}\n" for path in paths
    )


def twins(texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """Yield two places and two sentences wherever the sentences are one, or nearly.

    Args:
        texts: a place and what stands there.
    """
    sentences = [(place, sentence, shingles) for place, text in texts
                 for sentence in _SENTENCE.split(text) if (shingles := _shingles(sentence))]  # fmt: skip
    where: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, (_, _, shingles) in enumerate(sentences):
        for shingle in shingles:
            where[shingle].append(number)
    for number, (place, sentence, shingles) in enumerate(sentences):
        shared = Counter(other for shingle in shingles if len(where[shingle]) <= COMMON
                         for other in where[shingle] if other < number)  # fmt: skip
        for other, _ in shared.most_common(3):
            there, twin, others = sentences[other]
            if len(shingles & others) / len(shingles | others) >= NEAR:
                yield place, there, sentence, twin
                break


def problems(folder: Path, found: Found) -> list[str]:
    """Return what is wrong with a folder, a line each."""
    texts = ((path.relative_to(folder).as_posix(), text) for path, file in found.files.items() for text in file.texts())
    lines = [*found.wrong]
    lines += [f"{here} and {there}: {one!r} / {other!r}" for here, there, one, other in twins(texts)]
    if any((folder / split).is_dir() for split in SPLITS):
        lines += shared_writers(found.files)
        lines += strangers(found.files)
        untouched = folder / "untouched"
        hashes = untouched / SUMS
        if (hashes.read_text(encoding="utf-8") if hashes.exists() else "") != sums(untouched):
            lines.append(f"{hashes.relative_to(folder)} does not hold the hashes of what is there")
    return lines


def _counted(file: File) -> dict[str, int]:
    numbers: dict[str, int] = {"files": 1, f"files in {file.lang}": 1}
    match file:
        case Store() | Life() | Conversation():
            things = (
                {"memories": len(file.memories)} if not isinstance(file, Conversation) else {"turns": len(file.turns)}
            )
            idle = sum(not prompt.needs for prompt in file.prompts)
            return {**numbers, **things, "prompts": len(file.prompts), "prompts that need nothing": idle}
        case Messages():
            sentences = [sentence for item in file.items for sentence in item.sentences]
            languages = Counter(f"messages in {item.lang or file.lang}" for item in file.items)
            kept = sum(any(sentence.keep for sentence in item.sentences) for item in file.items)
            return {**numbers, "messages": len(file.items), **languages, "with a keeper": kept,
                    "sentences": len(sentences), "kept": sum(sentence.keep for sentence in sentences)}  # fmt: skip
        case Pairs():
            return {**numbers, "pairs": len(file.items), **Counter(item.relation for item in file.items)}
        case Day():
            turns = [turn for session in file.sessions for turn in session.turns]
            changes = sum(len(kept.replaces) + len(kept.withdraws) for turn in turns for kept in turn.keep)
            return {**numbers, "turns": len(turns), "kept": sum(len(turn.keep) for turn in turns),
                    "changes": changes, "needing": sum(bool(turn.needs) for turn in turns)}  # fmt: skip
        case Triggers():
            return {**numbers, "memories": len(file.items), "triggers": sum(map(len, file.items.values()))}
        case Topics():
            return {**numbers, "memories": len(file.items), **Counter(file.items.values())}
        case Families():
            return {**numbers, "families": len({item.family for item in file.items}), "pairs": len(file.items),
                    "near prompts": sum(len(item.near) for item in file.items)}  # fmt: skip
        case Coding():
            commands = sum(event.exit is not None for event in file.events)
            return {**numbers, "events": len(file.events), "commands": commands, "failed": len(file.where.failed),
                    "open": int(bool(file.where.open)), "met again": len(file.again),
                    "other prompts": len(file.other)}  # fmt: skip


def _shingles(sentence: str) -> frozenset[tuple[str, ...]]:
    words: Sequence[str] = _WORD.findall(sentence.casefold())
    if len(words) < WORDS:
        # Scripts without spaces are compared by their signs.
        words = [sign for sign in sentence if sign.isalpha()] if _UNSPACED.search(sentence) else []
        if len(words) < SIGNS:
            return frozenset()
    return frozenset(tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1))


def _plain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
    return str(error)


_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*\n?|\n+")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_UNSPACED = re.compile(r"[぀-ヿ一-鿿]")


def _table(numbers: Mapping[str, Mapping[str, Mapping[str, int]]]) -> str:
    return "\n".join(
        f"{split:<12} {kind:<14} " + ", ".join(f"{name} {number}" for name, number in given.items())
        for split, kinds in sorted(numbers.items()) for kind, given in sorted(kinds.items())
    )  # fmt: skip


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=DATA)
@click.option("--json", "as_json", is_flag=True, help="Print one object and nothing else.")
def main(folder: Path, as_json: bool) -> None:
    """Check labelled data and count it."""
    folder = folder.resolve()
    found = load(folder)
    result: dict[str, Any] = {"counts": counts(found.files), "wrong": problems(folder, found)}
    click.echo(
        json.dumps(result, ensure_ascii=False) if as_json else "\n".join([_table(result["counts"]), *result["wrong"]])
    )
    sys.exit(bool(result["wrong"]))


if __name__ == "__main__":
    main()
