"""The loss needs torch, which is installed for training alone: without it these tests are skipped and say so."""

import random

import pytest

torch = pytest.importorskip("torch", reason="torch is installed for training alone")
pytest.importorskip("safetensors", reason="safetensors is installed for training alone")

from training.examples import Asked, Example  # noqa: E402
from training.forms import Link  # noqa: E402
from training.train import AIMED, batch, best_of_parts, linked, pair_loss  # noqa: E402


def test_a_memory_scores_by_the_part_it_fits_best() -> None:
    cosines = torch.tensor([[0.1, 0.9], [0.5, 0.2], [0.3, 0.3]])
    found = best_of_parts(cosines, torch.tensor([0, 0, 1]), 2)
    assert torch.allclose(found, torch.tensor([[0.5, 0.9], [0.3, 0.3]]))


KNOWN = torch.ones(1, 2)


def test_the_loss_falls_as_what_helps_comes_near_and_the_rest_goes() -> None:
    needs, known = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.ones(2, 2)
    good = pair_loss(torch.tensor([[8.0, -6.0], [-6.0, -8.0]]), needs, known)
    poor = pair_loss(torch.tensor([[-2.0, 2.0], [4.0, -6.0]]), needs, known)
    assert float(good) < float(poor)


def test_what_helps_counts_more_than_what_does_not() -> None:
    missed = pair_loss(torch.tensor([[-2.0, -6.0]]), torch.tensor([[1.0, 0.0]]), KNOWN)
    raised = pair_loss(torch.tensor([[2.0, -8.0]]), torch.tensor([[0.0, 0.0]]), KNOWN)
    assert float(missed) > float(raised)


def test_what_nobody_has_labelled_teaches_nothing() -> None:
    needs, known = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0]])
    one, other = (pair_loss(torch.tensor([[1.0, cosine]]), needs, known) for cosine in (-9.0, 9.0))
    assert float(one) == float(other)


def example(name: str) -> Example:
    texts = tuple(f"{name} {number}" for number in range(20))
    asked = (Asked("?", ("?",), "direct", frozenset({3})), Asked("thanks", ("thanks",), "multi", frozenset()))
    return Example(name, "en", False, texts, asked, False, 0, tuple((f"when {text}",) for text in texts))


def test_a_trigger_says_of_its_own_memory_and_of_strangers_alone() -> None:
    made = batch(example("mine"), example("yours"), random.Random(1))
    for part, owner in zip(made.parts, made.owner, strict=True):
        if part.startswith("when"):
            known = {text for text, seen in zip(made.texts, made.known[owner], strict=True) if seen}
            helps = {text for text, need in zip(made.texts, made.needs[owner], strict=True) if need}
            assert helps == {part.removeprefix("when ")}
            assert {text for text in known if text.startswith("mine")} == helps
    assert sum(part.startswith("when") for part in made.parts) == AIMED
    assert made.parts.count("thanks") == 2


def test_a_family_says_nothing_of_its_own_other_memories() -> None:
    links = [
        Link(id=name, family=name[0], memory=f"memory {name}", prompt=f"prompt {name}", near=(f"{name} x", f"{name} y"))
        for name in ("a1", "a2", "b1")
    ]
    made = linked(links)
    assert made.needs.sum(1).tolist() == [1, 0, 0] * 3
    assert made.known[0].tolist() == [1, 0, 1]
    assert made.known[6].tolist() == [1, 1, 1]
