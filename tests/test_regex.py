"""Patterns that are compiled when they are first used: every one of the package is a regular expression."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import perdure
from perdure.errors import ExtensionError
from perdure.regex import Lazy, lazy


def test_a_lazy_pattern_does_what_a_compiled_one_does() -> None:
    text = "One heron, two herons."
    late, soon = lazy(r"herons?", re.IGNORECASE), re.compile(r"herons?", re.IGNORECASE)
    assert late.pattern == soon.pattern
    assert late.findall(text) == soon.findall(text)
    assert [each.span() for each in late.finditer(text)] == [each.span() for each in soon.finditer(text)]
    assert late.sub("egret", text) == soon.sub("egret", text)
    assert late.flags == soon.flags
    assert lazy(rb"\d").search(b"a1") is not None


def test_what_is_no_regular_expression_is_told_on_its_first_use() -> None:
    with pytest.raises(re.error):
        lazy("(").match("")


def test_every_pattern_of_the_package_is_a_regular_expression() -> None:
    names = [each.name for each in pkgutil.walk_packages(perdure.__path__, "perdure.") if ".__main__" not in each.name]
    found = 0
    for name in names:
        try:
            module = importlib.import_module(name)
        except (ImportError, ExtensionError):
            continue  # a host whose package is not installed
        for value in vars(module).values():
            if isinstance(value, Lazy):
                found += 1
                re.compile(value.pattern, value.flags)
    assert found > 200
