"""The descriptions of models are whole."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import pytest

from perdure.embed.catalogue import RECALL, OnnxModel, models


def test_the_identity_holds_what_decides_about_comparing() -> None:
    identity = RECALL.identity
    assert identity.digest == RECALL.sha256
    assert (identity.dims, identity.max_tokens, identity.pooling) == (384, 256, "mean")


def test_the_tokenizer_is_among_the_package_data() -> None:
    assert RECALL.tokenizer_path is not None
    assert RECALL.tokenizer_path.is_file()
    assert list(RECALL.pins) == [RECALL.file]


@pytest.mark.parametrize("model", models().values(), ids=lambda model: model.key)
def test_each_description_is_whole(model: OnnxModel) -> None:
    assert all((model.key, model.name, model.file, model.tokenizer, model.licence, model.about))
    assert re.fullmatch("[0-9a-f]{64}", model.sha256)
    assert re.fullmatch("[0-9a-f]{64}", model.tokenizer_sha256)
    assert min(model.dims, model.size) > 0
    assert model.max_tokens > 2
    assert model.pooling in ("mean", "cls")
    assert (model.data_path is None) == (model.hub is not None)


def test_a_description_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        RECALL.dims = 1  # type: ignore[misc]
