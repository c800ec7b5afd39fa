"""The word lists and tables in the data files beside the code, each read when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, cast

from perdure.kept import kept
from perdure.regex import Lazy


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list with spaces between them."""
    return frozenset(text.split())


@cache
def table(folder: str, name: str) -> dict[str, Any]:
    """Return the content of `perdure/<folder>/data/<name>.toml`, which is shared: nobody may change it."""
    text = files("perdure").joinpath(folder, "data", f"{name}.toml").read_text(encoding="utf-8")
    read: dict[str, Any] = kept(("toml", text), lambda: _parsed(text))
    return read


def _parsed(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


FUNCTION_CHARS = frozenset("".join(table("text", "words")["function_chars"]))
"""Chinese, Japanese and Korean characters that mostly do grammar."""
PARTICLES: list[str] = table("text", "words")["particles"].split()
"""Korean particles that are written at the end of a noun, longer ones first."""


@cache
def stop_words() -> frozenset[str]:
    """Return the words of all languages that say how a text is built rather than what it is about."""
    return word_set(" ".join(table("text", "words")["stop"].values()))


def named(kind: str, code: str = "en") -> list[list[str]]:
    """Return the entries of a list of names in a language ("months", "weekdays", "kin"), each in all its words."""
    return [entry.split() for entry in table("text", "words")[kind].get(code, "").split(",") if entry.strip()]


MONTHS, WEEKDAYS = ([names[0] for names in named(kind)] for kind in ("months", "weekdays"))
PARTS = {
    "weekday": f"(?:{'|'.join(WEEKDAYS)})",
    "month": "|".join(month for month in MONTHS if month != "may"),
    "any_month": f"(?:{'|'.join([*MONTHS, *(form for names in named('short_months') for form in names)])})",
}
"""What a pattern of a data file may hold in braces. Of months in full "may" is left out, which is mostly a verb."""


@cache
def kin(code: str = "en") -> dict[str, str]:
    """Return the words for relatives and the like in a language, plurals with them: each with the one for all."""
    return {form: names[0] for names in named("kin", code) for name in names for form in (name, f"{name}s")}


def filled(pattern: str | Sequence[str], parts: Mapping[str, str | Sequence[str]]) -> str:
    """Return a pattern, in one or more pieces, with each `{part}` in its place; a part may hold those that follow."""
    whole = "".join(pattern)
    for name, part in parts.items():
        whole = whole.replace(f"{{{name}}}", "".join(part))
    return whole


class _Listed(Lazy):
    """A pattern of a data file, in one or more pieces. Read and compiled when it is first used."""

    def __init__(self, folder: str, name: str, key: str) -> None:
        self._source = folder, name, key
        self._flags = 0

    def __getattr__(self, name: str) -> Any:
        if "pattern" not in vars(self):
            folder, file, key = self._source
            content = table(folder, file)
            self.pattern = filled(content[key], {**content.get("parts", {}), **PARTS})
            return getattr(self, name)
        return super().__getattr__(name)


@cache
def listed(folder: str, name: str, key: str) -> re.Pattern[str]:
    """Return a pattern of a data file, as `perdure.regex.lazy` does one of the code."""
    return cast("re.Pattern[str]", _Listed(folder, name, key))
