"""Which slot a statement fills: of whom or what (entity) it says what (key) and which value.

English, clause by clause: a subject, a verb and what follows, by the rules of `data/slots.toml`. What the grammar does
not show is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from perdure.capture.clauses import parts, trimmed
from perdure.capture.naming import QUALIFIERS, find_naming, is_no_name, nobody
from perdure.regex import lazy
from perdure.store.aliases import ALIAS, NAMING
from perdure.store.fact import is_single_valued
from perdure.text.lexicon import PARTS, filled, kin, listed, table, word_set
from perdure.text.normalise import fold

USER, CONVENTION = "user", "convention"
MAX_FIELD = 100
MAX_READ = 1_000
"""Characters of a statement that are read: what somebody says of one thing stands at its beginning."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What a statement says of what: entity, key and value."""

    entity: str
    key: str
    value: str


def find_slot(text: str) -> Slot | None:
    """Return the slot that the first telling clause of a statement fills, or None.

    A second name that it gives a thing counts for more, unless that thing is the value of a slot that holds one: "I
    work for the British Broadcasting Corporation (BBC)" has to take the place of the former employer.
    """
    found = next(_told(text[:MAX_READ]), None)
    named = find_naming(text)
    if named is None or (found and _holds(found, named.thing)):
        return found
    return Slot(named.thing, ALIAS, named.other)


def _holds(slot: Slot, thing: str) -> bool:
    """Return whether a thing is the one value of a slot, and not just the name of another thing."""
    one = is_single_valued(slot.key) and (slot.entity == USER or slot.key not in NAMING)
    return one and thing.casefold() in slot.value.casefold()


def _told(text: str) -> Iterator[Slot]:
    for clause in parts(text):
        for pattern, build in _rules():
            found = next(filter(None, map(build, pattern.finditer(clause))), None)
            if found is not None and found.entity and found.key and found.value:
                yield Slot(*(part[:MAX_FIELD].strip() for part in (found.entity, found.key, found.value)))


_Build = Callable[[re.Match[str]], Slot | None]


@cache
def _rules() -> tuple[tuple[re.Pattern[str], _Build], ...]:
    """Return the rules: what a clause looks like, and who reads it."""
    verbs = {*base_forms(), *base_forms().values()} - {"got", "have got", "last", "end", "open", "close"}
    beside = PARTS | {
        "liking": "|".join(rf"(?:{pattern.pattern})" for _, pattern in _likings()),
        "verbs": "|".join(sorted(verbs, key=lambda verb: (-len(verb), verb))),
    }
    grammar = table("capture", "slots")
    return tuple(
        (
            lazy(filled(filled(rule["pattern"], grammar["parts"]), beside), re.IGNORECASE),
            _READERS[rule["read"]] if "read" in rule else _filled(rule["key"], bare=rule.get("bare", False)),
        )
        for rule in grammar["rules"]
    )


@cache
def base_forms() -> dict[str, str]:
    """Return the base form of a verb, by its other forms."""
    grammar = table("capture", "slots")
    return {**{f"{verb}s": verb for verb in grammar["verbs"].split()}, **grammar["base_forms"]}


@cache
def _bases() -> frozenset[str]:
    return frozenset(base_forms().values())


@cache
def _likings() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return patterns of what people feel about things, by the verb that stands for them."""
    likings = table("capture", "slots")["likings"].items()
    return tuple((verb, lazy("".join(pattern), re.IGNORECASE)) for verb, pattern in likings)


@cache
def _kin() -> frozenset[str]:
    return frozenset([*kin(), "dog", "cat"])


@cache
def _not_jobs() -> frozenset[str]:
    return word_set(table("capture", "slots")["not_jobs"])


def _entity(match: re.Match[str]) -> str | None:
    """Return whom a clause is about; None if its subject is a pronoun or a word that opens a sentence."""
    found = match.groupdict()
    if found.get("name"):
        name = found["name"]
        return None if name.split()[0].casefold() in nobody() else name
    if found.get("owned"):
        return QUALIFIERS.sub("", found["owned"])
    return USER


def _filled(key: str, *, bare: bool = False) -> _Build:
    def build(match: re.Match[str]) -> Slot | None:
        entity = _entity(match)
        value = trimmed(match["value"], bare=bare)
        if (key == "location" and _TIME.match(value)) or (key == "name" and is_no_name(value)):
            return None
        return Slot(entity, key, value) if entity and value else None

    return build


def _moved(match: re.Match[str]) -> Slot | None:
    """Read where somebody lives now, if it is a place that they moved to: a team, and "we", move to programs, too."""
    found = _filled("location", bare=True)(match)
    if found is None:
        return None
    value = trimmed(_BESIDE_MOVE.sub("", found.value))
    moved = Slot(found.entity, found.key, value)
    if found.entity.split()[-1].casefold() in _kin() or is_place(value) or _HOME.search(fold(match[0])):
        return moved
    return moved if match["self"] in ("I", "i") and _may_be_town(value) else None


def is_place(name: str) -> bool:
    """Return whether a name is that of a known country, region or town, or begins or ends with one ("Bergen, Norway").

    "I moved to Linz" tells where somebody lives, "We moved to Revit" does not, and only the name shows which.
    """
    if any(part.strip().removeprefix("the ") in _known_places() for part in fold(name).split(",")):
        return True
    words = fold(name).replace("-", " ").split()
    return _may_be_town(name) and not _known_places().isdisjoint((words[0], words[-1]))


def _may_be_town(name: str) -> bool:
    """Return whether a name is spelled like that of a town ("Stratford-upon-Avon"), and is no known program or job."""
    words = re.split(r"[.,]? |-", name)
    if not words[0][:1].isupper() or is_no_name(name) or not _no_towns().isdisjoint(map(str.casefold, words)):
        return False
    return all(word in _IN_TOWNS or (_LETTERS.fullmatch(word) and word[0].isupper()) for word in words)


@cache
def _no_towns() -> frozenset[str]:
    return word_set(table("capture", "slots")["no_towns"])


@cache
def _known_places() -> frozenset[str]:
    names = ",".join(table("text", "words")["places"].values()).split(",")
    return frozenset(fold(name.strip().removeprefix("the ")) for name in names)


def _verb(match: re.Match[str]) -> Slot | None:
    entity, verb = _entity(match), match["verb"].casefold()
    if entity is None or (entity != USER and verb in _bases() and not _PLURAL.search(entity)):
        # "The release train leaves": a bare verb behind one thing is a noun.
        return None
    return Slot(entity, base_forms().get(verb, verb), trimmed(match["value"]))


def _attribute(match: re.Match[str]) -> Slot | None:
    """Read "my X is Y" (X of the user), "Ann's X is Y" and "my Z's X is Y" (X of Ann, of Z)."""
    found = match.groupdict()
    value = trimmed(_CONTRAST.sub("", found["value"]))
    owner = found.get("owner") or found.get("thing") or found.get("person")
    if not value or (owner or "").split(" ")[0].casefold() in nobody() or value.casefold().startswith("not "):
        return None
    noun = QUALIFIERS.sub("", found["noun"])
    key = _key(noun, value)
    return Slot(QUALIFIERS.sub("", owner) if owner else USER, key, trimmed(value, bare=key == "name"))


def _key(noun: str, value: str) -> str:
    folded = noun.casefold()
    if folded.endswith(" birthday"):
        return "birthday"
    if "@" in value:
        return "email"
    if folded.endswith(("number", "phone", "mobile", "cell")) and sum(map(str.isdecimal, value)) >= 6:
        return "phone"
    keys: dict[str, str] = table("capture", "slots")["keys"]
    return keys.get(folded, noun)


def _state(match: re.Match[str]) -> Slot | None:
    """Read what somebody is: so old, on a diet, of a profession."""
    entity, value = _entity(match), trimmed(match["value"])
    if not entity:
        return None
    person = match.groupdict().get("owned") is None or entity.split()[-1].casefold() in _kin()
    age = _AGE.match(value)
    if age and person:
        return Slot(entity, "age", age[1])
    diet = _DIETS.match(value)
    if diet:
        return Slot(entity, "diet", diet[0])
    job = _JOB.match(value)
    if job and person and job["noun"].casefold() not in _not_jobs() and job[0].split()[-1][0].islower():
        return Slot(entity, "job", job["job"])
    return None


def _choice(match: re.Match[str]) -> Slot | None:
    value, other = trimmed(match["value"], bare=True), trimmed(match["other"])
    return Slot("decision", f"{value} over {other}", value) if value and other else None


def _decision(match: re.Match[str]) -> Slot:
    value = trimmed(match["value"])
    return Slot("decision", value, value)


def _convention(match: re.Match[str]) -> Slot | None:
    found = match.groupdict()
    how = "never" if found["how"].casefold().startswith(("don", "do ")) else found["how"].casefold()
    told = next(_told(found["value"]), None) if how == _FROM_NOW_ON else None
    if told is not None and _is_fact(told):
        # "From now on I live in Linz" is no rule to go by.
        return told
    rule = _WHO_DOES.sub("", _TAIL.sub("", trimmed(found["value"])))
    return Slot(CONVENTION, rule, how) if len(rule) > 2 else None


def _is_fact(told: Slot) -> bool:
    """Return whether what holds from now on is a fact of a person: "from now on my job is to test" is an order."""
    person = told.entity == USER or told.entity.split()[-1].casefold() in _kin()
    if not person or told.key not in _NEW_FACTS or told.value.casefold().startswith("to "):
        return False
    return told.key != "employer" or told.value[0].isupper()  # "I work at night" names none


def _liking(match: re.Match[str]) -> Slot | None:
    entity = _entity(match)
    verb = next((verb for verb, pattern in _likings() if pattern.fullmatch(match["liking"])), None)
    value = trimmed(match["value"])
    return Slot(entity, verb, value) if entity and verb and value else None


def _rather(match: re.Match[str]) -> Slot | None:
    entity = _entity(match)
    return Slot(entity, "prefer", f"{match['value']} over {trimmed(match['other'])}") if entity else None


def _contact(match: re.Match[str]) -> Slot | None:
    key = "email" if "@" in match["value"] else "phone"
    before = _CHANNEL.sub("", match.string[: match.start("value")])
    who = _REACHED.search(before)
    named = who["name"] or QUALIFIERS.sub("", who["who"]) if who else ""
    return Slot(named if named.casefold() not in nobody() and named else USER, key, match["value"])


def _fronted(match: re.Match[str]) -> Slot | None:
    """Read what puts the object first: "Pilates I love", "Tidal is what I use"."""
    return Slot(USER, base_forms().get(match["verb"].casefold(), match["verb"].casefold()), match["value"])


def _own(match: re.Match[str]) -> Slot | None:
    """Read "my X is Y"; of people only what names them: "my brother is in Oslo" is no brother called Oslo.

    And "our team moved to Slack" is no team called Slack.
    """
    noun = match["noun"].casefold().split()[-1]
    if noun in _kin() and not re.match(_NAME, trimmed(match["value"])):
        return None
    if noun in _PEOPLE and _CHANGED.search(match.string, match.end("noun"), match.start("value")):
        return None
    return _attribute(match)


_WORD = r"(?!(?:i|we|you|he|she|it|they|that|who|which|is|are|was|were|i'm)\b)[\w-]+"
_NAME = r"(?-i:[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+){0,2}?|(?:Mr|Mrs|Ms|Dr|Prof)\.? [A-ZÀ-Þ][\w-]+)"
_TIME = listed("capture", "grammar", "no_place")
_AGE = lazy(r"(\d{1,3})(?: years? old| last week| today| this \w+| (?:last|next|in|on) .*)?(?: and .*)?$")
_JOB = listed("capture", "grammar", "job")
_TAIL = lazy(r",? (?:please|ok|okay|thanks|will you|would you)$", re.IGNORECASE)
_PEOPLE = word_set("team family company department group class band crew")
_CHANGED = lazy(r"\b(?:moved|changed|switched) to\b", re.IGNORECASE)
_FROM_NOW_ON = "from now on"
_NEW_FACTS = frozenset(("name", "email", "phone", "location", "employer"))
_BESIDE_MOVE = listed("capture", "grammar", "beside_move")
_IN_TOWNS = word_set(
    "am an auf bei da de del della den der des di do dos du el im in la le les of on ob sur the upon van"
)
_LETTERS = lazy(r"\w(?:[^\W\d_A-ZÀ-Þ]|['’])+\.?")
_WHO_DOES = lazy(
    r"(?:please )?(?:we|i)(?:'ll| will| shall| should|'re going to| are going to)? (?!am |are |'|have )", re.IGNORECASE
)
"""Of a rule, who is to keep it: "we will use pnpm" is the rule to use it."""
_CHANNEL = listed("capture", "grammar", "channel")
_REACHED = listed("capture", "grammar", "reached")
_CONTRAST = lazy(r",?(?: now)? (?:instead of|rather than|(?:and |but )?not|but)\b.*$", re.IGNORECASE)
_PLURAL = lazy(r"(?:s|people|children|men|women|folk|staff|police)$", re.IGNORECASE)
_HOME = listed("capture", "grammar", "home")
_DIETS = listed("capture", "grammar", "diet")
_READERS: Mapping[str, _Build] = {
    "attribute": _attribute, "choice": _choice, "contact": _contact, "convention": _convention, "decision": _decision,
    "fronted": _fronted, "liking": _liking, "moved": _moved, "own": _own, "rather": _rather, "state": _state,
    "verb": _verb,
}  # fmt: skip
