from __future__ import annotations

import re
import sys

import pytest

from perdure.text.scripts import DENSE_CLASS, dense_script


@pytest.mark.parametrize(
    ("chars", "script"),
    [
        ("猫々〇㐀𠮷豈", "han"),
        ("ねこガーｶﾞㇰ", "kana"),
        ("고양ㄱﾡ", "hangul"),
        ("กิ", "thai"),
        ("ລ", "lao"),
        ("ខ្", "khmer"),
        ("မ", "myanmar"),
        ("aé1 ,.・、。шעعह\U0001f600", None),
    ],
)
def test_script(chars: str, script: str | None) -> None:
    assert {dense_script(char) for char in chars} == {script}


def test_the_character_class_agrees_with_the_function() -> None:
    dense = re.compile(f"[{DENSE_CLASS}]")
    for code in range(0, sys.maxunicode, 7):
        assert (dense.match(chr(code)) is not None) == (dense_script(chr(code)) is not None)
