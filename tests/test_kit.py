"""What `for_each` reports."""

from __future__ import annotations

import inspect
import re

import pytest

from tests.kit import for_each


@for_each("number", [1, 2, 3])
def even(number: int) -> None:
    assert number % 2 == 0


@for_each(("one", "other"), [("a", "a"), ("a", "b"), ("c", "d")])
def same(shared: list[str], one: str, other: str) -> None:
    shared.append(one)
    assert one == other


def test_every_case_that_fails_is_named_with_what_was_expected() -> None:
    with pytest.raises(AssertionError) as failed:
        even()
    assert re.findall(r"- number=(\d), line \d+:\n    AssertionError: assert \((\d) % 2\) == 0", str(failed.value)) == [
        ("1", "1"),
        ("3", "3"),
    ]
    assert str(failed.value).startswith("2 of 3 cases failed:\n")
    shared: list[str] = []
    with pytest.raises(AssertionError, match=r"(?s)one='a', other='b'.*assert 'a' == 'b'.*one='c', other='d'"):
        same(shared=shared)
    assert shared == ["a", "a", "c"]


def test_cases_that_hold_pass() -> None:
    for_each("number", [2, 4])(lambda number: None)()


def test_what_should_raise_and_does_not_is_a_failure_and_so_is_an_error() -> None:
    @for_each("value", [1, "x", 0])
    def refused(value: int) -> None:
        with pytest.raises(ZeroDivisionError):
            _ = 1 / value

    with pytest.raises(AssertionError, match=r"(?s)^2 of 3 .*value=1, .*DID NOT RAISE.*value='x', .*TypeError"):
        refused()


def test_pytest_sees_the_fixtures_alone_and_an_item_for_all_of_a_kind() -> None:
    assert list(inspect.signature(same).parameters) == ["shared"]

    @for_each(("kind", "word"), [("a", "ant"), ("b", "bee"), ("a", "auk")], by="kind")
    def kinds(shared: list[str], kind: str, word: str) -> None:
        shared.append(f"{kind} {word}")

    assert list(inspect.signature(kinds).parameters) == ["shared", "kind"]
    [mark] = kinds.pytestmark  # type: ignore[attr-defined]
    assert (mark.args[0], list(mark.args[1])) == ("kind", ["a", "b"])
    shared: list[str] = []
    kinds(shared=shared, kind="a")
    assert shared == ["a ant", "a auk"]


def test_without_a_case_there_is_no_test() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        for_each("number", [])


def test_a_case_that_takes_too_long_ends_them_all() -> None:
    tried: list[int] = []

    @for_each("number", [1, 2])
    def slow(number: int) -> None:
        tried.append(number)
        pytest.fail("Timeout (>120.0s) from pytest-timeout.")

    with pytest.raises(pytest.fail.Exception) as late:
        slow()
    assert (tried, late.value.__notes__) == ([1], ["in the case number=1"])
