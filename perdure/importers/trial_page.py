"""A comparison as a page of HTML: one file without scripts, and nothing in it is read as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from perdure.cli.output import minute
from perdure.importers.trial import Answered, Trial
from perdure.text.clean import clip
from perdure.text.escape import visible
from perdure.text.pluralize import counted

_SHOWN = 600
"""Characters of a prompt."""


def title(trial: Trial) -> str:
    """Return what a comparison is of."""
    return f"Your last {counted(len(trial.answered), 'prompt')}: {trial.source} vs. perdure"


def figures(trial: Trial) -> Sequence[tuple[str, str, str]]:
    """Return the totals in words: what is counted, of today, of perdure."""
    of = trial.totals()
    return (
        ("tokens per prompt", f"{of['today_tokens']:,.0f}", f"{of['perdure_tokens']:,.0f}"),
        ("tokens at session start", "", f"{of['perdure_opening_tokens']:,.0f}"),
        ("prompts with nothing recalled", f"{of['today_silent']:,}", f"{of['perdure_silent']:,}"),
        ("median milliseconds", "", f"{of['perdure_ms']:.1f}"),
    )


def page(trial: Trial) -> str:
    """Return the page."""
    rows = "".join(
        f"<tr><th>{name}</th><td>{today}</td><td>{perdure}</td></tr>" for name, today, perdure in figures(trial)
    )
    template = files("perdure.importers").joinpath("data/trial.html").read_text(encoding="utf-8")
    return Template(template).substitute(
        title=_html(title(trial)),
        shown=_html(trial.shown),
        totals=f"<table><tr><th></th><th>current</th><th>perdure</th></tr>{rows}</table>",
        standing="\n".join(
            f"<details><summary>{_html(name)}</summary><pre>{_html(text)}</pre></details>"
            for name, text in trial.standing.items()
        ),
        answered="\n".join(map(_article, trial.answered)),
    )


def _article(each: Answered) -> str:
    at = f"<small>{minute(each.at)}</small> " if each.at is not None else ""
    today = _side("Current", counted(each.today_tokens, "token"), each.today)
    cost = f"{counted(each.perdure_tokens, 'token')}, {each.ms:.1f} ms"
    begun = f"At session start: {counted(each.opening_tokens, 'token')}"
    more = f"<details><summary>{begun}</summary>{_items(each.opening)}</details>" if each.opening else ""
    perdure = _side("perdure", cost, each.perdure, more)
    head = f"<h2>{at}{_html(clip(each.prompt, _SHOWN))}</h2>"
    return f'<article>{head}<div class="sides">{today}{perdure}</div></article>'


def _side(name: str, cost: str, brought: Sequence[str], more: str = "") -> str:
    said = _items(brought) if brought else '<div class="none">nothing</div>'
    return f"<div><h3>{name}: {cost}</h3>{said}{more}</div>"


def _items(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_html(text)}</li>' for text in texts)}</ul>"


def _html(text: str) -> str:
    return html.escape("\n".join(map(visible, text.split("\n"))))
