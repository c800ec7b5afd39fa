"""Rules that bring up memories whatever a search finds: when a prompt names something, or begins a session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from perdure.errors import InputError
from perdure.regex import lazy
from perdure.store.fact import SELECT, Fact, from_row
from perdure.store.search import View, lexical, lookup
from perdure.store.sql import Connection, run
from perdure.text.normalise import fold, fts_text, match_terms

MOST = 4
"""Directives that one prompt may set off."""
FACTS = 3
_ENDINGS = ("", "s", "es", "d", "ed", "ing")
_WORD = lazy(r"\w+")


@dataclass(frozen=True, slots=True)
class Directive:
    """One rule. Each of the first four that is set can set it off.

    It brings up the facts with its tag; without a tag those of its entity; else those with its keyword or with
    words of its task.

    Attributes:
        entity: the prompt names this entity.
        keyword: the prompt holds this word or phrase.
        task: the prompt holds the name of this kind of task, or one of its words.
        session_start: the prompt is the first of a session.
        tag: what to bring up.
        task_words: words of the task, such as "release" and "rollout" of "deploy".
    """

    entity: str | None = None
    keyword: str | None = None
    task: str | None = None
    session_start: bool = False
    tag: str | None = None
    task_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError if it can never be set off, or brings nothing up."""
        named = (self.entity, self.keyword, self.task, self.tag, *self.task_words)
        if any(text is not None and not text.strip() for text in named):
            raise InputError("a directive has an empty entity, keyword, task or tag; name it, or leave it out")
        if not (self.entity or self.keyword or self.task or self.session_start):
            raise InputError("a directive is never set off; give an entity, a keyword, a task or session_start")
        if not (self.tag or self.entity or self.keyword or self.task):
            raise InputError("a directive brings nothing up; give session_start a tag, an entity or a keyword")


def directives(
    *,
    entities: Iterable[str] = (),
    keywords: Iterable[str] = (),
    tasks: Mapping[str, Collection[str]] | None = None,
    session_tags: Iterable[str] = (),
) -> tuple[Directive, ...]:
    """Return the directives of plain settings, those of session starts first.

    Args:
        entities: each brings up its facts when it is named.
        keywords: each brings up the facts that hold it.
        tasks: words by kind of task; each kind brings up the facts that hold such words.
        session_tags: facts with these tags are brought up when a session begins.

    Raises:
        InputError: one of them is empty.
    """
    return (
        *(Directive(session_start=True, tag=tag) for tag in session_tags),
        *(Directive(entity=entity) for entity in entities),
        *(Directive(keyword=keyword) for keyword in keywords),
        *(Directive(task=task, task_words=tuple(words)) for task, words in (tasks or {}).items()),
    )


def matching(
    directives: Iterable[Directive], prompt_terms: frozenset[str], text: str, first_turn: bool
) -> list[Directive]:
    """Return the directives that a prompt sets off: the first four of them, in their order.

    Args:
        directives: all rules.
        prompt_terms: of the prompt, as `perdure.text.normalise.match_terms` gives them.
        text: the prompt.
        first_turn: whether it is the first of its session.
    """
    spaced = _spaced(text)
    found = [
        rule
        for rule in dict.fromkeys(directives)
        if (rule.session_start and first_turn)
        or any(_mentioned(phrase, prompt_terms, spaced) for phrase in _triggers(rule))
    ]
    return found[:MOST]


def facts_of(connection: Connection, directive: Directive, view: View, limit: int = FACTS) -> list[Fact]:
    """Return what a directive brings up, best first."""
    if directive.tag is not None:
        return _tagged(connection, replace(view, tag=directive.tag), limit)
    if directive.entity is not None:
        return lookup(connection, directive.entity, None, view, limit)
    words = " ".join(filter(None, (directive.keyword, directive.task, *directive.task_words)))
    return [hit.fact for hit in lexical(connection, words, view, limit).hits]


def _triggers(rule: Directive) -> list[str]:
    return [phrase for phrase in (rule.entity, rule.keyword, rule.task, *rule.task_words) if phrase]


def _mentioned(phrase: str, terms: frozenset[str], spaced: str) -> bool:
    words = _spaced(phrase)
    if words.strip() and words in spaced:
        return True
    word = fold(phrase).strip()
    # A single word is also met in its other forms: "deploy" in "deployed".
    return match_terms(phrase) == (word,) and any(word + ending in terms for ending in _ENDINGS)


def _spaced(text: str) -> str:
    """Return the words of a text between spaces, so that no word is found inside of another one."""
    return f" {' '.join(_WORD.findall(fts_text(text)))} "


def _tagged(connection: Connection, view: View, limit: int) -> list[Fact]:
    condition, values = view.sql()
    sql = (
        f"SELECT {SELECT} FROM facts INDEXED BY facts_tags WHERE facts.tags <> '' AND {condition}"
        " ORDER BY facts.pinned DESC, facts.importance DESC, facts.seq DESC LIMIT ?"
    )
    return [from_row(row) for row in run(connection, sql, (*values, limit))]
