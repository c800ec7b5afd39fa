"""What stands for a long text where there is little room: a summary that was given, or the text's beginning."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.store.fact import Fact

_MORE = "…"


@dataclass(frozen=True, slots=True)
class Summaries:
    """Which texts have a summary, and how long one is that is cut out of its text.

    Attributes:
        threshold: a text of more characters is long.
        max_chars: characters of a long text that stand for it.
    """

    threshold: int = 300
    max_chars: int = 80

    def of(self, text: str) -> str | None:
        """Return the beginning of a long text; None for a text that stands for itself."""
        if len(text) <= max(self.threshold, self.max_chars):
            return None
        return text[: self.max_chars].rstrip() + _MORE

    def shown(self, fact: Fact) -> str:
        """Return the text of a fact, or what stands for it if it is long."""
        given = fact.summary if fact.summary and not was_cut(fact) else None
        if given is not None and len(fact.text) > self.threshold:
            return given
        return self.of(fact.text) or fact.text


USUAL = Summaries()


def was_cut(fact: Fact) -> bool:
    """Return whether a fact's summary is the beginning of its text, of whatever length was set at that time."""
    cut = fact.summary or ""
    return cut.endswith(_MORE) and fact.text.startswith(cut.removesuffix(_MORE))
