"""Stores and conversations as an encoder and a gate learn from them: texts, prompts in parts, and what each needs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.recall.query import parts
from training.check import DATA, load
from training.forms import Conversation, Families, File, Link, Store, Triggers

SEED = 20
"""Of everything that is drawn at random."""
EVERY = 7
"""One store in so many of a writer is kept from the encoder: a gate fitted on what it has learnt trusts it too much."""
FOLDS = 2
"""The other stores are parted in so many: two further encoders, each without one part, make these fit for the gate."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt: its parts, its kind, and the numbers of the texts that help."""

    text: str
    parts: tuple[str, ...]
    kind: str
    needs: frozenset[int]


@dataclass(frozen=True, slots=True)
class Example:
    """Memories, or turns of a conversation, and prompts.

    Attributes:
        held: kept from the encoder, for the gate.
        fold: which part of `FOLDS` it is in.
        triggers: of each text the situations in which it matters; empty: nobody has written any for the store.
    """

    name: str
    lang: str
    passages: bool
    texts: tuple[str, ...]
    prompts: tuple[Asked, ...]
    held: bool
    fold: int
    triggers: tuple[tuple[str, ...], ...] = ()


def examples(split: str, folder: Path = DATA) -> list[Example]:
    """Return the stores and conversations of a split, by name.

    Raises:
        ValueError: a file does not have its form.
    """
    found = _files(split, folder)
    files = [file for file in found if isinstance(file, Store | Conversation)]
    triggers = {file.store: file.items for file in found if isinstance(file, Triggers)}
    return [_example(file, triggers) for file in files]


def families(split: str, folder: Path = DATA) -> list[Link]:
    """Return the pairs of implicit need of a split, each with its near misses."""
    return [item for file in _files(split, folder) if isinstance(file, Families) for item in file.items]


def _files(split: str, folder: Path) -> list[File]:
    found = load(folder / split)
    if found.wrong:
        raise ValueError(found.wrong[0])
    return list(found.files.values())


def digest(given: Iterable[Example]) -> str:
    """Return a hash of all that is learnt from, 16 hex digits."""
    said = sorted(
        repr((each.name, each.texts, [(p.text, sorted(p.needs)) for p in each.prompts], each.triggers))
        for each in given
    )
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _example(file: Store | Conversation, triggers: Mapping[str, Mapping[str, tuple[str, ...]]]) -> Example:
    if isinstance(file, Store):
        name, listed = file.store, [(memory.id, memory.text) for memory in file.memories]
    else:
        name = file.conversation
        listed = [(turn.id, f"{turn.name}: {turn.text}" if turn.name else turn.text) for turn in file.turns]
    number = name.split("-")[1]
    places = {each: place for place, (each, _) in enumerate(listed)}
    return Example(
        name=name,
        lang=file.lang,
        passages=isinstance(file, Conversation),
        texts=tuple(text for _, text in listed),
        prompts=tuple(
            Asked(prompt.text, tuple(parts(prompt.text)), prompt.kind, frozenset(places[need] for need in prompt.needs))
            for prompt in file.prompts
        ),
        held=int(number) % EVERY == 4,
        fold=int(number) % FOLDS,
        triggers=tuple(triggers[name][each] for each, _ in listed) if name in triggers else (),
    )


def texts_of(given: Sequence[Example]) -> list[str]:
    """Return every text that is embedded, once."""
    found: dict[str, None] = {}
    for each in given:
        found |= dict.fromkeys((*each.texts, *(part for prompt in each.prompts for part in prompt.parts)))
        found |= dict.fromkeys(trigger for some in each.triggers for trigger in some)
    return list(found)
