"""What shows that a new statement takes the place of a known one, ends it, or says the same.

Each rule looks at the two statements and nothing else, and answers with evidence that a person would accept who is
shown both; without any, both stay. How near they are in meaning is no evidence: in a store something is always nearest,
and of several hundred pairs that life brings, one is a change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perdure.capture.clauses import parts
from perdure.capture.describe import slot_of
from perdure.capture.figures import Kind, exchange, values
from perdure.capture.language import CODES, language_of
from perdure.capture.reading import (
    END,
    FORMER,
    FRAMING,
    KIN,
    LIMITED,
    NOW_SO,
    Reading,
    plain,
    read,
    same_people,
    stems,
    words_for,
)
from perdure.capture.slots import is_place
from perdure.regex import lazy
from perdure.store.fact import Fact, is_single_valued
from perdure.text.lexicon import listed, table, word_set
from perdure.text.normalise import fingerprint, fold
from perdure.text.sameness import details


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a known statement no longer holds."""

    reason: str  # in a few words that are no memory
    stale: str  # what of the known statement is out of date, as it is written there
    rest: bool = False  # the known statement says more than that, which still holds


def replaces(old: Fact, new: Fact) -> Evidence | None:
    """Return what shows that a new fact says otherwise of the same, or None."""
    return None if _limited(old.text, new.text) else _slot(old, new) or _figure(old, new) or _former(old, new)


def over(old: Fact, new: Fact) -> Evidence | None:
    """Return what shows that a new fact says that a known one is over, or None."""
    if _limited(old.text, new.text) or read(old.text).denied:
        return None
    for clause in parts(new.text):
        folded = _NOT_ANY_MORE.sub(r"no longer \g<1>", fold(clause))
        if END.search(folded):
            ended = read(END.sub(" has ", folded))
            for told in parts(old.text):
                if _ends(read(told), _values_of(told), ended) and same_people(read(old.text), read(new.text)):
                    return Evidence("says that this has ended", told, _more(old.text, told, new.text))
    return None


def same(old: Fact, new: Fact, near: bool = False) -> bool:
    """Return whether a new fact says what a known one or one of its clauses says, and nothing else.

    Figures, times, people, negations and limits agree, and so does the order where something is compared. Where their
    vectors are as near as those of two wordings, the new one may say less.
    """
    if any(_agree(read(each), read(new.text), each, new.text, near) for each in (old.text, *parts(old.text))):
        return True
    return _same_value(old, new)


def denies(old: Fact, new: Fact) -> bool:
    """Return whether one of two facts says in the same words that the other is not so."""
    before, after = read(old.text), read(new.text)
    other = before.denied != after.denied and len(before.terms) > 1 and before.terms == after.terms
    return other and same_people(before, after)


def may_change(text: str) -> bool:
    """Return whether a text says, whatever it is about, that something is over or otherwise than it was."""
    folded = fold(text)
    return not LIMITED.search(folded) and any(cue.search(folded) for cue in (END, FRAMING, FORMER))


def speaks_of_change(old: Fact, new: Fact) -> bool:
    """Return whether a new fact says that something is over or otherwise now, and may mean a known one.

    It shows that something has changed, not that this has: how near the two are must tell, so it hides nothing.
    """
    before, after, folded = read(old.text), read(new.text), fold(new.text)
    if not any(cue.search(folded) for cue in (END, NOW_SO, FRAMING, FORMER)) or _limited(old.text, new.text):
        return False
    others = before.subject - after.terms and after.subject - before.terms
    return bool(before.terms & after.terms) and not others and same_people(before, after)


def same_slot(old: Fact, new: Fact) -> bool:
    """Return whether two facts fill the same slot, in whatever case it is written."""
    return bool(old.key and new.key) and fold(f"{old.entity}\0{old.key}") == fold(f"{new.entity}\0{new.key}")


def says_more(old: Fact, new: Fact) -> bool:
    """Return whether a new fact that ends a known one says something else as well."""
    return bool(stems(plain(END.sub(" ", fold(new.text)))) - read(old.text).terms - _EVENTS - _DOING)


def _slot(old: Fact, new: Fact) -> Evidence | None:
    """Both fill the same slot that holds one value, with values of one type."""
    if not (same_slot(old, new) and old.value and new.value and is_single_valued(new.key or "")):
        return None
    key = fold(new.key or "")
    before, after = read(old.text), read(new.text)
    clauses = _clause_of(old), _clause_of(new)
    if any(_past(clause) or read(clause).denied for clause in clauses):
        return None
    one, other = read(old.value).terms, read(new.value).terms
    less = other < one or (other == one and _signs(old.value) == _signs(new.value))
    if not other or less or _type(old.value) != _type(new.value) or not _fits(key, new.value):
        return None
    frames = _frame(old), _frame(new)
    if frames[0] != frames[1] or not (_attribute_shown(key, old) and _attribute_shown(key, new)):
        return None
    left = before.terms - after.terms - one - _slot_words(old) - stems(" ".join(before.times)) - before.figures
    return Evidence("another value for a single-valued slot", old.value, bool(left) and old.value in old.text)


def _same_value(old: Fact, new: Fact) -> bool:
    """Return whether both fill a slot with one value, and the new one says nothing beside."""
    if not (same_slot(old, new) and old.value and new.value and fingerprint(old.value) == fingerprint(new.value)):
        return False
    before, after = read(old.text), read(new.text)
    if (before.figures, before.times, before.dates) != (after.figures, after.times, after.dates):
        return False
    limits = LIMITED.search(fold(new.text)) or any(map(_past, (old.text, new.text))) or before.denied or after.denied
    beside = after.terms - read(new.value).terms - _slot_words(new)
    return not limits and not beside and _signs(old.value) == _signs(new.value) and same_people(before, after)


def _figure(old: Fact, new: Fact) -> Evidence | None:
    """They differ in one figure, time, weekday, date or, where it is said to be so now, name."""
    if old.key and new.key and not same_slot(old, new):
        return None
    found = exchange(old.text, new.text)
    return Evidence(f"another {found.kind.value} of the same", found.stale, found.rest) if found else None


def _former(old: Fact, new: Fact) -> Evidence | None:
    """The new one names the old value as the former one, and what it is a value of."""
    before, after = read(old.text), read(new.text)
    if before.denied or not same_people(before, after):
        return None
    when = stems(" ".join(before.times | after.times))
    for clause in parts(new.text):
        ended = stems(plain(END.sub(" ", fold(clause)))) - _GENERIC - when if END.search(fold(clause)) else frozenset()
        about = (before.terms - ended) & (after.terms - read(clause).terms) - _GENERIC - _TITLES - when
        if ended and not ended <= before.subject and ended <= before.terms and about:
            left = before.terms - ended - after.terms - _GENERIC
            return Evidence("says that the former value no longer holds", _written(old.text, ended), bool(left))
    for match in FORMER.finditer(fold(new.text)):
        words = next(filter(None, match.groups()))
        former = stems(plain(words))
        about = (before.terms - former) & (after.terms - former) - _GENERIC - _TITLES - when
        alone = match["from"] and former == stems(plain(old.value or "")) and len(list(parts(new.text))) == 1
        if former - when and former <= before.terms and (about or alone):
            left = before.terms - former - after.terms - _GENERIC
            return Evidence("names the former value", _written(old.text, former), bool(left) and not alone)
    return None


def _ends(before: Reading, told: frozenset[str], ended: Reading) -> bool:
    """Return whether what is over is what a clause says, but for when and how often."""
    terms = ended.terms - _EVENTS - stems(" ".join(ended.times))
    subjects = before.subject == ended.subject or bool(
        ended.subject & _EVENTS and ended.subject - _EVENTS <= before.terms
    )
    left = before.terms - terms - told - _DOING
    return bool(terms) and terms - _DOING <= before.terms and subjects and not left and bool(terms & before.terms)


def _agree(before: Reading, after: Reading, old: str, new: str, near: bool) -> bool:
    if before.owner != after.owner or before.words & KIN != after.words & KIN or before.denied != after.denied:
        return False
    if (before.figures, before.times, before.dates) != (after.figures, after.times, after.dates):
        return False
    if _signs(old) != _signs(new):
        return False
    if details(plain(old)).polarity != details(plain(new)).polarity:
        return False
    if not after.terms or not (after.terms <= before.terms if near else after.terms == before.terms):
        return False
    if _COMPARING & before.words == _COMPARING & after.words == frozenset():
        return True
    orders = [[word for word in each.sequence if word in each.terms | _COMPARING] for each in (before, after)]
    return orders[0] == orders[1]


def _limited(old: str, new: str) -> bool:
    """Return whether a text holds for a while, in one case or in somebody's wishes, and what is known does not."""
    found = [set(LIMITED.findall(_DATED.sub(" ", fold(text)))) for text in (old, new)]
    return bool(found[1] - found[0])


def _past(text: str) -> bool:
    return bool(_PAST.search(FRAMING.sub(" ", fold(text).replace("was born", "born"))))


def _type(value: str) -> str:
    """Return of which type a value is: e-mail, date, figure, name or words."""
    if "@" in value:
        return "email"
    kinds = {each.kind for each in values(f"on {value}")}
    for kind in (Kind.DATE, Kind.WEEKDAY, Kind.TIME, Kind.FIGURE):
        if kind in kinds:
            return "date" if kind is not Kind.FIGURE else "figure"
    if any(map(str.isdecimal, value)):
        return "figure"
    return "name" if any(word[0].isupper() for word in value.split()) else "words"


def _signs(text: str) -> str:
    """Return the signs that no word shows: they tell C++ from C#."""
    return "".join(re.findall(r"[+#€$£%]", text))


def _fits(key: str, value: str) -> bool:
    """Return whether a value is of the type that its slot holds."""
    wanted = _TYPES.get(key.rsplit(" ", 1)[-1])
    return wanted is None or _type(value) == wanted


def _attribute_shown(key: str, fact: Fact) -> bool:
    """Return whether the words show that a value is one of this slot: one can live in an editor, or move to one."""
    if key not in _PLACES or not fact.value:
        return True
    found = slot_of(fact.text, language_of(fact.text))
    if found is None or not same_slot(fact, Fact(fact.text, entity=found.entity, key=found.key)):
        return True  # its slot was named by whoever stored it
    return is_place(fact.value) or bool(_HOME.search(fold(_clause_of(fact))))


def _frame(fact: Fact) -> frozenset[str]:
    """Return what stands before a value in its clause and says of what it is one: "work" in "my work e-mail is"."""
    if language_of(fact.text) in CODES or not fact.value or fact.value not in fact.text:
        return frozenset()
    return stems(plain(_clause_of(fact).partition(fact.value)[0])) - _slot_words(fact)


def _clause_of(fact: Fact) -> str:
    """Return the clause in which the value of a fact stands; its whole text where none has it to the letter."""
    return next((part for part in parts(fact.text) if fact.value and fact.value in part), fact.text)


def _slot_words(fact: Fact) -> frozenset[str]:
    named = stems(plain(f"{fact.entity or ''} {(fact.key or '').replace('_', ' ')}"))
    return named | _ATTRIBUTES | _DOING


def _more(old: str, clause: str, new: str) -> bool:
    """Return whether a text says more than one of its clauses that the new one does not say, either."""
    return bool(read(old).terms - read(clause).terms - read(new).terms)


def _values_of(clause: str) -> frozenset[str]:
    """Return the stems of the figures, times, weekdays and dates in a clause."""
    words = " ".join(each.words for each in values(clause) if each.kind is not Kind.NAME)
    return stems(plain(words)) | read(clause).figures | stems(" ".join(read(clause).times))


def _written(text: str, terms: frozenset[str]) -> str:
    """Return the words of a text with these stems, as they are written."""
    return " ".join(word for word in re.findall(r"[\w.:/+#'-]*\w[+#]*", text) if stems(plain(word)) & terms)


_NOT_ANY_MORE = lazy(r"\bnot (.{1,60}?),? any ?(?:more|longer)(?= *(?:[,.;!]|$))")
"""What denies it is a part of what ends it, as in "no longer"."""
_DATED = lazy(r"(?:\w+ ){0,2}\w+ \(\d{4}-\d\d-\d\d[^)]*\)")
_PAST = lazy(r"\b(?:was|were|had|used to|lived|worked|stayed|formerly|former|previously|before|until|once)\b")
_PLACES = frozenset(["location", "city", "country", "hometown"])
_HOME = listed("capture", "grammar", "home")
_TYPES = {
    "birthday": "date", "anniversary": "date", "deadline": "date", "age": "figure", "salary": "figure",
    "phone": "figure", "email": "email", "location": "name", "city": "name", "country": "name", "hometown": "name",
}  # fmt: skip
_ATTRIBUTES, _DOING, _TITLES, _EVENTS = map(words_for, ("attributes", "doing", "titles", "events"))
_GENERIC = _DOING | words_for("generic")
_COMPARING = word_set(table("capture", "changes")["words"]["comparing"])
