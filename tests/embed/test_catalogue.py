"""Descriptions of models are checked when they are made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from perdure.embed.catalogue import MINILM_INT8
from perdure.errors import InputError


def test_the_identity_holds_what_decides_about_comparing() -> None:
    identity = MINILM_INT8.identity
    assert identity.digest == MINILM_INT8.sha256
    assert (identity.dims, identity.max_tokens, identity.pooling) == (384, 256, "mean")


def test_the_tokenizer_is_among_the_package_data() -> None:
    assert MINILM_INT8.tokenizer_path is not None
    assert MINILM_INT8.tokenizer_path.is_file()
    assert list(MINILM_INT8.pins) == [MINILM_INT8.file]


@pytest.mark.parametrize(
    "change",
    [
        {"key": ""},
        {"name": ""},
        {"licence": ""},
        {"size": 0},
        {"package": ""},
        {"file": ""},
        {"tokenizer": ""},
        {"sha256": "abc"},
        {"sha256": "A" * 64},
        {"tokenizer_sha256": ""},
        {"dims": 0},
        {"max_tokens": 2},
        {"pooling": "max"},
    ],
)
def test_a_field_out_of_range_is_named(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"OnnxModel.{next(iter(change))} is"):
        replace(MINILM_INT8, **change)


def test_a_description_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        MINILM_INT8.dims = 1  # type: ignore[misc]
