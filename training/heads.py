"""Fits the heads that tell what is worth keeping and what it is, and says what they reach beside the rules.

python -m training.heads [--out perdure/capture/data/heads.npz] [--untouched] [--json]

A row is a sentence as capture cuts it; it is worth keeping if it holds a labelled sentence that is. The heads are a
logistic regression for that, and one for the category of what is kept. Fitted on `train`; the languages they decide for
are those in which they do no worse on `development` than the rules. `--untouched` judges that split too, once.

Printed of each split: precision (of what is kept, the share that holds something worth keeping), recall (of the
labelled sentences worth keeping, the share that is kept), F1, and the share of right categories; for the rules, for
heads that know nothing of them, for both, and for both after so many sentences of messages.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from perdure.capture.describe import describe
from perdure.capture.heads import BUCKETS, CUES, NAMES, Heads, Read, read, tokens
from perdure.capture.statements import Heard, heard
from training.alike import SAME, overlap
from training.check import DATA, load
from training.forms import Messages, Pairs, Sentence, Store

BENCH = Path(__file__).parents[1] / "bench" / "data"
OUT = Path(__file__).parents[1] / "perdure" / "capture" / "data" / "heads.npz"
SEED = 20
STRENGTH = 5.0
"""Inverse of the penalty on weights."""
COMMON = 15
"""Sentences that a word occurs in to count in shapes."""
LEAST = (0.8, 0.1)
"""Probability from which on a sentence is kept in which the rules see nothing, and one in which they see something."""
PLAIN, PLAIN_WEIGHT, BENCH_WEIGHT = 4000, 0.15, 0.45
"""Plain statements and questions beside the messages, of each so many; how much one counts, and one of the benches."""
ASKING = frozenset({"direct", "paraphrase", "list", "multi", "other_attribute", "other_sense", "general", "chat"})
UNKNOWN = "other"
"""The category of a plain statement: no label says it, and no message has it."""
CURVE = (600, 1500, 3000, 6000)


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence as capture hears it, with the labelled sentences that it holds."""

    heard: Heard
    labels: tuple[Sentence, ...]
    lang: str
    message: str
    weight: float = 1.0

    @property
    def kept(self) -> Sentence | None:
        """The first labelled sentence in it that is worth keeping."""
        return next((label for label in self.labels if label.keep), None)


@dataclass(frozen=True, slots=True)
class Split:
    """The rows of a split, and how many labelled sentences of each language are worth keeping."""

    rows: tuple[Row, ...]
    wanted: Mapping[str, int]


Judge = Callable[[Row], str | None]
"""Returns the category of a row that is to be kept, None of one that is not."""


def split_of(name: str, folder: Path = DATA) -> Split:
    """Return the rows of a split.

    Raises:
        ValueError: a file does not have its form.
    """
    found = load(folder / name)
    if found.wrong:
        raise ValueError(found.wrong[0])
    rows: list[Row] = []
    wanted: Counter[str] = Counter()
    for file in found.files.values():
        for item in file.items if isinstance(file, Messages) else ():
            lang = item.lang or file.lang
            wanted[lang] += sum(sentence.keep for sentence in item.sentences)
            for each in heard(item.text):
                labels = tuple(label for label in item.sentences if overlap(each.text, label.text) >= SAME)
                rows.append(Row(each, labels, lang, item.id))
    return Split(tuple(rows), wanted)


def plain(name: str, folder: Path = DATA) -> list[Row]:
    """Return what people say of themselves in so many words, and what they ask, of the other kinds of data.

    Messages hold facts among requests and jokes; that "I am vegan" is worth keeping must be learnt elsewhere: the
    memories of stores and pairs are, the prompts of stores are not. What these are filed under is not known.
    """
    said: list[tuple[str, bool, str]] = []
    for file in load(folder / name).files.values():
        if isinstance(file, Pairs):
            news = [item.new for item in file.items if item.relation != "unrelated"]
            said += [
                (text, True, file.lang) for text in (*(known for item in file.items for known in item.known), *news)
            ]
        elif isinstance(file, Store):
            said += [(memory.text, True, file.lang) for memory in file.memories]
            said += [(prompt.text, False, file.lang) for prompt in file.prompts if prompt.kind in ASKING]
    chance = random.Random(SEED)
    drawn: list[tuple[str, bool, str]] = []
    for keep in (True, False):
        some = sorted({each for each in said if each[1] is keep})
        drawn += chance.sample(some, min(len(some), PLAIN))
    return [*_together(drawn, PLAIN_WEIGHT, chance), *_together(list(_benched()), BENCH_WEIGHT, chance)]


def _benched() -> Iterator[tuple[str, bool, str]]:
    """Yield the statements of the halves of `bench/data` that may be tuned on, which are plainer still."""
    sets = {path: json.loads(path.read_text(encoding="utf-8")) for path in sorted(BENCH.rglob("*.json"))}
    for path, content in sets.items():
        if path.stem in ("decisions-tuned", "pairs-tuned"):
            known = (each for item in content["items"] for each in (item["known"], item["new"]))
            said = {text for each in known for text in ([each] if isinstance(each, str) else each)}
            yield from ((text, True, "en") for text in sorted(said))
        elif path.stem == "capture-tuned" or path.parent.name == "languages-tuned":
            lang = "en" if path.stem == "capture-tuned" else path.stem
            for item in content["items"]:
                if sum(1 for _ in heard(item["text"])) == 1:
                    yield item["text"], item["capture"], lang


def _together(said: list[tuple[str, bool, str]], weight: float, chance: random.Random) -> Iterator[Row]:
    """Yield texts alone and some at a time, in any order: so that their place in a message tells nothing."""
    chance.shuffle(said)
    while said:
        some = [said.pop() for _ in range(min(len(said), chance.randint(1, 4)))]
        labels = [_label(text, keep) for text, keep, _ in some]
        for each in heard("\n".join(text for text, _, _ in some)):
            fitting = tuple(label for label in labels if overlap(each.text, label.text) >= SAME)
            yield Row(each, fitting, some[0][2], f"plain {some[0][0]}", weight)


def _label(text: str, keep: bool) -> Sentence:
    kept = {"category": UNKNOWN, "lasting": True} if keep else {}
    return Sentence.model_validate({"text": text, "keep": keep, **kept})


def digest(rows: Iterable[Row]) -> str:
    """Return a hash of all that is learnt from, 16 hex digits."""
    said = sorted(repr((row.message, row.heard.text, row.kept is not None)) for row in rows)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def fitted(rows: Sequence[Row], *, rules: bool = True) -> dict[str, NDArray[Any]]:
    """Fit the heads, for all languages.

    Args:
        rows: to learn from.
        rules: whether what the rules say is among the features.
    """
    counts = Counter(word for row in rows for word in {token.lower() for token in tokens(row.heard.text)})
    common = frozenset(word for word, count in counts.items() if count >= COMMON)
    features = matrix([read(row.heard, common) for row in rows], rules=rules)
    keep = LogisticRegression(C=STRENGTH, max_iter=2000)
    keep.fit(features, [row.kept is not None for row in rows], [row.weight for row in rows])
    filed = {place: row.kept.category for place, row in enumerate(rows) if row.kept and row.kept.category != UNKNOWN}
    places, known = list(filed), list(filed.values())
    kind = LogisticRegression(C=STRENGTH, max_iter=2000, class_weight="balanced").fit(features[places], known)
    weights = np.vstack([keep.coef_, kind.coef_])
    return {
        "words": weights[:, :BUCKETS].astype(np.float16),
        "shapes": weights[:, BUCKETS : 2 * BUCKETS].astype(np.float16),
        "exact": weights[:, 2 * BUCKETS :].astype(np.float32),
        "base": np.concatenate([keep.intercept_, kind.intercept_]).astype(np.float32),
        "common": np.array(sorted(common)),
        "categories": np.array(kind.classes_),
        "codes": np.array(sorted({row.heard.code for row in rows})),
        "least": np.array(LEAST),
    }


def matrix(given: Sequence[Read], *, rules: bool = True) -> sparse.csr_matrix:
    """Return the features of sentences, shape (sentences, 2 * BUCKETS + len(NAMES)), as the heads weigh them."""
    data, columns, ends = [], [], [0]
    hidden = 0 if rules else len(CUES) + 2
    for each in given:
        for start, places in ((0, each.words), (BUCKETS, each.shapes)):
            columns += [start + place for place in places]
            data += [1 / math.sqrt(len(places))] * len(places)
        columns += [2 * BUCKETS + place for place in range(hidden, len(NAMES))]
        data += each.exact[hidden:]
        ends.append(len(columns))
    return sparse.csr_matrix((data, columns, ends), shape=(len(given), 2 * BUCKETS + len(NAMES)))


def by_heads(weights: Mapping[str, NDArray[Any]], *, rules: bool = True) -> Judge:
    """Return the judgement of heads, with `rules` beside those that decide where the heads do not."""
    heads = Heads(weights)

    def judge(row: Row) -> str | None:
        stated = heads(row.heard if rules else replace(row.heard, stated=()))
        if stated is None:
            return by_rules(row)
        return describe(stated[0]).category if stated else None

    return judge


def by_rules(row: Row) -> str | None:
    """Return the category that the rules give a row."""
    return describe(row.heard.stated[0]).category if row.heard.stated else None


def suited(weights: Mapping[str, NDArray[Any]], judged: Split) -> NDArray[Any]:
    """Return the languages, as capture tells them, in which the heads do no worse than the rules."""
    codes = []
    for code in sorted({row.heard.code for row in judged.rows}):
        rows = [row for row in judged.rows if row.heard.code == code]
        wanted = len({(row.message, label.text) for row in rows for label in row.labels if label.keep})
        kept = ([row for row in rows if judge(row)] for judge in (by_rules, by_heads(weights)))
        before, after = (_share(some, wanted)["f1"] for some in kept)
        if after >= before:
            codes.append(code)
    return np.array(codes)


def figures(split: Split, judge: Judge) -> dict[str, Any]:
    """Return precision, recall and F1 of what is kept, and how many categories of it are right; by language the F1."""
    kept = [(row, category) for row in split.rows if (category := judge(row))]
    langs = {lang: _share([row for row, _ in kept if row.lang == lang], split.wanted[lang]) for lang in split.wanted}
    right = [(row.kept.category, category) for row, category in kept if row.kept]
    return {
        **_share([row for row, _ in kept], sum(split.wanted.values())),
        "category": round(sum(one == other for one, other in right) / max(1, len(right)), 3),
        "languages": {lang: found["f1"] for lang, found in sorted(langs.items())},
    }


def _share(kept: Sequence[Row], wanted: int) -> dict[str, float]:
    junk = sum(row.kept is None for row in kept)
    found = len({(row.message, label.text) for row in kept for label in row.labels if label.keep})
    precision, recall = (len(kept) - junk) / max(1, len(kept)), found / max(1, wanted)
    f1 = 2 * precision * recall / (precision + recall) if found else 0.0
    return {"precision": round(precision, 3), "recall": round(recall, 3), "f1": round(f1, 3)}


def calibration(split: Split, weights: Mapping[str, NDArray[Any]], bins: int = 10) -> float:
    """Return how far probabilities and shares of what is worth keeping lie apart, a mean over rows (ECE)."""
    heads = Heads(weights)
    said = np.array([1 / (1 + math.exp(-heads.log_odds(row.heard)[0])) for row in split.rows])
    true = np.array([row.kept is not None for row in split.rows])
    place = np.minimum((said * bins).astype(int), bins - 1)
    gaps = [abs(said[place == each].mean() - true[place == each].mean()) * (place == each).mean()
            for each in range(bins) if (place == each).any()]  # fmt: skip
    return round(float(sum(gaps)), 3)


def first(rows: Sequence[Row], most: int) -> list[Row]:
    """Return about so many rows: whole messages, drawn at random."""
    names = sorted({row.message for row in rows})
    random.Random(SEED).shuffle(names)
    order = {name: place for place, name in enumerate(names)}
    return sorted(rows, key=lambda row: order[row.message])[:most]


def measured(
    train: Split, more: Sequence[Row], judged: Split, stored: Mapping[str, NDArray[Any]]
) -> dict[str, dict[str, Any]]:
    """Return the figures of the rules, of heads without them, of both, and of heads that learnt from less."""
    return {
        "rules": figures(judged, by_rules),
        "heads alone": figures(judged, by_heads(fitted([*train.rows, *more], rules=False), rules=False)),
        "both": figures(judged, by_heads(stored)) | {"calibration": calibration(judged, stored)},
        **{f"{most} sentences": figures(judged, by_heads(fitted([*first(train.rows, most), *more]))) for most in CURVE},
    }


@click.command()
@click.option("--out", type=click.Path(path_type=Path), default=OUT, help="Where the weights go.")
@click.option("--untouched", is_flag=True, help="Judge that split too. Once, at the end.")
@click.option("--json", "as_json", is_flag=True, help="Print one object and nothing else.")
def main(out: Path, untouched: bool, as_json: bool) -> None:
    """Fit the heads, and say what they reach."""
    train, more = split_of("train"), plain("train")
    stored = fitted([*train.rows, *more])
    stored["codes"] = suited(stored, split_of("development"))
    np.savez_compressed(out, allow_pickle=False, **stored)
    names = ("development", "untouched") if untouched else ("development",)
    result = {name: measured(train, more, split_of(name), stored) for name in names}
    if as_json:
        click.echo(json.dumps({"data": digest([*train.rows, *more]), "bytes": out.stat().st_size, **result}))
        return
    click.echo(f"data {digest([*train.rows, *more])}, {len(train.rows)} sentences and {len(more)} plain ones")
    click.echo(f"{out.name}: {out.stat().st_size} bytes; they decide for {', '.join(stored['codes'])}")
    for name, found in result.items():
        for what, given in found.items():
            shown = "  ".join(f"{key} {value}" for key, value in given.items() if key != "languages")
            click.echo(f"{name:<12} {what:<15} {shown}")
        for what in ("rules", "both"):
            click.echo(f"{name:<12} {what:<15} F1 by language {found[what]['languages']}")


if __name__ == "__main__":
    main()
