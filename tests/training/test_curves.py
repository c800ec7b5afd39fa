"""What the learning curves learn from."""

from __future__ import annotations

import numpy as np

from training.curves import Row, features, part


def test_a_larger_share_holds_every_smaller_one_and_groups_stay_whole() -> None:
    rows = [Row((f"text {number}",), number % 2 == 0, f"group {number // 4}") for number in range(64)]
    quarter, half = part(rows, 0.25), part(rows, 0.5)
    assert (len(quarter), len(half), len(part(rows, 1.0))) == (16, 32, 64)
    assert set(quarter) < set(half)
    assert all(len([place for place in half if rows[place].group == rows[mine].group]) == 4 for mine in half)


def test_two_texts_are_compared_in_each_direction() -> None:
    vectors = {"a": np.array([1, 0], dtype=np.float32), "b": np.array([0.6, 0.8], dtype=np.float32)}
    [row] = features([Row(("a", "b"), True, "g")], vectors)
    assert np.allclose(row, [0.6, 20 * 0.6, 0, 0.4, 0.8])
