"""The loss needs torch, which is installed for training alone: without it these tests are skipped and say so."""

import pytest

torch = pytest.importorskip("torch", reason="torch is installed for training alone")
pytest.importorskip("safetensors", reason="safetensors is installed for training alone")

from training.train import best_of_parts, pair_loss  # noqa: E402


def test_a_memory_scores_by_the_part_it_fits_best() -> None:
    cosines = torch.tensor([[0.1, 0.9], [0.5, 0.2], [0.3, 0.3]])
    found = best_of_parts(cosines, torch.tensor([0, 0, 1]), 2)
    assert torch.allclose(found, torch.tensor([[0.5, 0.9], [0.3, 0.3]]))


def test_the_loss_falls_as_what_helps_comes_near_and_the_rest_goes() -> None:
    needs, threshold = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor(0.4)
    good = pair_loss(torch.tensor([[0.8, 0.1], [0.1, 0.0]]), needs, threshold)
    poor = pair_loss(torch.tensor([[0.3, 0.5], [0.6, 0.2]]), needs, threshold)
    assert float(good) < float(poor)


def test_what_helps_counts_more_than_what_does_not() -> None:
    threshold = torch.tensor(0.4)
    missed = pair_loss(torch.tensor([[0.3, 0.1]]), torch.tensor([[1.0, 0.0]]), threshold)
    raised = pair_loss(torch.tensor([[0.5, 0.1]]), torch.tensor([[0.0, 0.0]]), threshold)
    assert float(missed) > float(raised)
