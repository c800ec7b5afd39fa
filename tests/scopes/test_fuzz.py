"""Ten thousand strings that nobody would type: no error but our own, no row of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from perdure.api.memory import Memory
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, ScopeError
from perdure.recall.options import LEXICAL, RecallOptions
from perdure.recall.pipeline import Asked, Recaller
from perdure.store.fact import Fact
from perdure.store.history import Change
from perdure.store.listing import Filter
from perdure.store.scope import Audience, Scope
from tests.scopes.conftest import CALLERS, House

COUNT = 10_000
CALLER = "eva"
REFUSALS = (InputError, NotFoundError, AmbiguousIdError, ScopeError)
PIECES = (
    *('"', "'", "`", "(", ")", "*", "^", ":", "-", "+", "{", "}", "%", "_", ",", ";", "?", "\\", "/", "|", "~", "#"),
    *(" AND ", " OR ", " NOT ", "NEAR(", "NEAR/2", "text:", "facts_fts", "rowid:", "{text entity}:", "- {why}:"),
    *("' OR 1=1 --", "'; DROP TABLE facts; --", "\" UNION SELECT * FROM facts --", "/*", "*/", "0x27", "char(39)"),
    *("%%", "_%", "\\%", "[a-z]", "GLOB '*'", "REGEXP", "json_extract(", "$.undoes", "?1", ":name", "@x", "$y"),
    *("\0", "\ud800", "\udfff", "\ud83d", "\ufeff", "\u200b", "\u202e", "\uffff", "\U0010ffff", "\r\n", "\x1b[31m"),
    *("é", "ß", "İ", "ﬁ", "漢字", "ひらがな", "한국어", "ไทย", "हिन्दी", "العربية", "🐦", "👨‍👩", "a\u0301\u0302"),
    *("canary", "canaryaaaa", "canarycccc", "canarybbbb", "harbour", "sings", "bird", "alias", "user:owner", "global"),
    *("Cage0", "Cage1", "Cage2", "tag0", "tag1", "tag2", "fact", "other", "approved", "eva", "owner", "user:eva"),
    *("", " ", "a", "0", "-1", "NaN", "null", "None", "true", "../../etc/passwd", "<memory-context>", "${jndi:x}"),
    *("aaaaaaaa", "00000000-0000", "deadbeef", "ffffffff-ffff-4fff-8fff-ffffffffffff", "1e400", "9" * 40),
)  # fmt: skip


def strings() -> Iterator[str]:
    """Return the strings: pieces put together, random characters, parts of ids, and some of 100 kB."""
    chance = random.Random(20_270_115)
    for number in range(COUNT):
        kind = number % 10
        if number % 500 == 0:
            piece = chance.choice(PIECES) or "x"
            yield (piece * (100_000 // len(piece) + 1))[:100_000]
        elif kind < 6:
            yield "".join(chance.choices(PIECES, k=chance.randint(1, 8)))
        elif kind < 8:
            yield "".join(chr(chance.randrange(0x110000)) for _ in range(chance.randint(1, 40)))
        else:
            yield "".join(chance.choices("0123456789abcdef-%_*' ", k=chance.randint(6, 40)))


def answers(memory: Memory, text: str) -> Sequence[Callable[[], object]]:
    """Return the calls that a string goes through. Filters get it without lone surrogates, see below."""
    sound = text.encode("utf-8", "replace").decode()
    return (
        lambda: memory.get(text),
        lambda: memory.admin.has(text),
        lambda: memory.lookup(text),
        lambda: memory.lookup("cage2", text, tag="tag2"),
        lambda: memory.admin.list(tag=text),
        lambda: memory.admin.list(Filter(category=sound)),
        lambda: memory.admin.list(Filter(entity=sound, review_state="approved")),
        lambda: memory.admin.list(Filter(review_state=sound)),
        lambda: memory.admin.list(Filter(scope=Scope.parse(text))),
        lambda: memory.admin.list(Filter(scope=Scope("user", sound))),
    )


def facts_in(answer: object) -> list[Fact]:
    match answer:
        case Fact():
            return [answer]
        case list():
            return answer
        case _:
            return []


@pytest.mark.parametrize(
    "chosen",
    [
        Filter(category="a \ud800"),
        Filter(entity="a \ud800"),
        Filter(review_state="a \ud800"),
        Filter(scope=Scope("user", "a \ud800")),
    ],
)
def test_a_filter_with_a_lone_surrogate_finds_nothing_or_is_refused(house: House, chosen: Filter) -> None:
    try:
        assert house.caller(CALLER).admin.list(chosen) == []
    except REFUSALS:
        return


@pytest.mark.parametrize("use", [Memory.get, Memory.forget, lambda memory, text: memory.store("A.", scope=text)])
def test_a_refusal_quotes_little_of_what_was_given(house: House, use: Callable[[Memory, str], object]) -> None:
    with pytest.raises(REFUSALS) as raised:
        use(house.caller(CALLER), "a" * 100_000)
    size = len(str(raised.value))
    assert size < 1_000


def uncounted(memory: Memory) -> list[Change]:
    """Return the changes, without how often a memory was recalled."""
    return [
        replace(change, fact=replace(change.fact, recall_count=0, injected_count=0))
        for change in memory.admin.changes()
    ]


def test_no_string_breaks_a_reader_or_shows_what_others_own(house: House) -> None:
    memory = house.caller(CALLER)
    own = set(CALLERS[CALLER][1])
    store = house.engine.store
    recaller = Recaller(store, RecallOptions(deadline=60.0), lambda: None, house.clock)
    audience = Audience.of(user=CALLER)
    before = memory.admin.stats(), house.caller("owner").admin.stats(), uncounted(memory)
    hits = 0
    for number, text in enumerate(strings()):
        calls = answers(memory, text)
        for call in (calls[number % len(calls)], calls[(number // len(calls)) % len(calls)]):
            try:
                found = facts_in(call())
            except REFUSALS:
                continue
            hits += len(found)
            assert {str(Scope(fact.scope, fact.scope_target)) for fact in found} <= own, ascii(text[:80])
        if number % 2 == 0:
            recall, receipt = recaller.recall(text, audience, asked=Asked(tag=text[:50] if number % 8 == 0 else None))
            assert receipt.judge is None or receipt.states[LEXICAL] == "ok", ascii(text[:80])
            shown = {memory.get(item.id).id for item in recall.items} if recall else set()
            assert len(shown) == (len(recall.items) if recall else 0)
            hits += len(shown)
        if number % 100 == 0:
            memory.recall(text)
    recaller.close()
    # Some of the strings are names and words of the canaries: answers that are always empty prove nothing.
    assert hits > 100
    assert before == (memory.admin.stats(), house.caller("owner").admin.stats(), uncounted(memory))
