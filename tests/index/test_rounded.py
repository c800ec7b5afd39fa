"""Rounded vectors: near what they were, in their places, and in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.index.vector_index import RoundedMatrix, highest, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

seeds = st.integers(0, 2**32 - 1)


def unit(seed: int, *shape: int) -> Vectors:
    """Return random vectors of length one."""
    vectors = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    scaled: Vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def products(matrix: RoundedMatrix, query: Vectors) -> Vectors:
    """Return the products with all rows."""
    return matrix.products(query, np.arange(len(matrix)))


class TestProducts:
    @given(seeds, st.integers(1, 130), st.integers(1, 700))
    @settings(max_examples=60, deadline=None)
    def test_are_those_of_the_rounded_numbers(self, seed: int, dims: int, rows: int) -> None:
        vectors, query = unit(seed, rows, dims), unit(seed + 1, dims)
        matrix = RoundedMatrix(dims)
        matrix.append(vectors)
        (steps, levels), (step, asked) = rounded(vectors), rounded(query[None, :])
        whole = levels.astype(np.int64) @ asked[0].astype(np.int64)
        assert products(matrix, query) == pytest.approx(steps * step * whole, abs=1e-5)

    def test_come_near_the_true_ones(self) -> None:
        vectors, query = unit(1, 5_000, 384), unit(2, 384)
        matrix = RoundedMatrix(384, capacity=5_000)
        matrix.append(vectors)
        difference = products(matrix, query) - vectors @ query
        assert np.abs(difference).max() < 0.005
        assert difference.std() < 0.0008

    @given(seeds, st.sets(st.integers(0, 299)))
    @settings(max_examples=60, deadline=None)
    def test_of_some_rows_are_what_they_are_among_all(self, seed: int, some: set[int]) -> None:
        matrix = RoundedMatrix(48)
        matrix.append(unit(seed, 300, 48))
        query, rows = unit(seed + 1, 48), np.array(sorted(some), dtype=np.intp)
        assert matrix.products(query, rows).tolist() == products(matrix, query)[rows].tolist()

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    def test_what_is_not_a_number_is_near_nothing(self, wrong: float) -> None:
        vectors = unit(3, 3, 16)
        vectors[1, 5] = wrong
        matrix = RoundedMatrix(16)
        matrix.append(vectors)
        found = products(matrix, vectors[0])
        assert found[0] == pytest.approx(1, abs=0.02)
        assert found[1] == 0

    def test_one_large_number_does_not_flatten_other_rows(self) -> None:
        vectors = np.concatenate([unit(4, 2, 384), np.eye(1, 384, dtype=np.float32)])
        matrix = RoundedMatrix(384)
        matrix.append(vectors)
        for row, vector in enumerate(vectors):
            assert products(matrix, vector)[row] == pytest.approx(1, abs=0.005)


class TestRows:
    @given(st.data())
    @settings(max_examples=100, deadline=None)
    def test_stand_where_they_were_put(self, data: st.DataObject) -> None:
        """Whatever was appended, replaced, dropped and kept: the same as a matrix of what is left."""
        matrix, expected = RoundedMatrix(8, data.draw(st.integers(0, 5))), np.zeros((0, 8), dtype=np.float32)
        for step in data.draw(st.lists(st.sampled_from(["append", "put", "drop", "keep"]), min_size=1, max_size=12)):
            new = unit(data.draw(seeds), data.draw(st.integers(1, 20)), 8)
            if step == "append" or not len(expected):
                matrix.append(new)
                expected = np.concatenate([expected, new])
            elif step == "put":
                rows = data.draw(st.permutations(range(len(expected) + len(new))))[: len(new)]
                behind = max(0, max(rows) + 1 - len(expected))
                expected = np.concatenate([expected, np.zeros((behind, 8), dtype=np.float32)])
                matrix.put(list(rows), new)
                expected[list(rows)] = new
            elif step == "drop":
                row = data.draw(st.integers(0, len(expected) - 1))
                matrix.drop(row)
                expected[row] = 0
            else:
                kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(expected), max_size=len(expected))))
                matrix.keep(kept.astype(bool))
                expected = expected[kept.astype(bool)]
        assert len(matrix) == len(expected)
        for query in np.eye(8, dtype=np.float32):
            assert products(matrix, query) == pytest.approx(expected @ query, abs=0.01)


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), max_size=50), st.integers(1, 60))
def test_the_highest_come_first_and_of_equal_ones_the_first(scores: list[float], limit: int) -> None:
    found = highest(np.array(scores, dtype=np.float32), limit).tolist()
    assert found == sorted(range(len(scores)), key=lambda place: -scores[place])[:limit]
