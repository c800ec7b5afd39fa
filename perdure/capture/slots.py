"""Which slot a statement fills: of whom or what (entity) it says what (key) and which value.

English, clause by clause: a subject, a verb and what follows. What the grammar does not show is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perdure.capture.clauses import parts, trimmed
from perdure.capture.naming import find_naming, is_no_name
from perdure.capture.slot_words import (
    BASE_FORMS,
    BASES,
    DIETS,
    KEYS,
    KIN,
    LIKINGS,
    NOBODY,
    NOT_JOBS,
    QUALIFIERS,
    VERBS,
)
from perdure.regex import lazy
from perdure.store.aliases import ALIAS, NAMING
from perdure.store.fact import is_single_valued

USER = "user"
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
        for rule in _RULES:
            found = rule(clause)
            if found is not None and found.entity and found.key and found.value:
                yield Slot(*(part[:MAX_FIELD].strip() for part in (found.entity, found.key, found.value)))


Rule = Callable[[str], Slot | None]
_Build = Callable[[re.Match[str]], Slot | None]

_WORD = r"(?!(?:i|we|you|he|she|it|they|that|who|which|is|are|was|were|i'm)\b)[\w-]+"
_NP = rf"{_WORD}(?: {_WORD}){{0,3}}?"
_NAME = r"(?-i:[A-ZÀ-Þ][\w-]+(?: [A-ZÀ-Þ][\w-]+){0,2}?|(?:Mr|Mrs|Ms|Dr|Prof)\.? [A-ZÀ-Þ][\w-]+)"
_SUBJECT = (
    rf"(?:\b(?P<self>I|we)(?: all| both)?|\b(?:my|our|the) (?P<owned>{_NP})|\b(?P<name>{_NAME}))"
)  # fmt: skip
_ADVERBS = (
    r"(?: (?:now|still|currently|actually|really|just|also|recently|always|usually|mostly|much|only|absolutely|"
    r"generally|secretly|do|does|both|all|finally|quite|already|tend to|try to))*"
)
_BE = r"(?:'s|'m|'re| is| am| are| was| were| will be|'ve been| have been| has been)"
_VALUE = r"(?P<value>\S.{0,300})"


def _rule(pattern: str, build: _Build) -> Rule:
    compiled: list[re.Pattern[str]] = []

    def apply(clause: str) -> Slot | None:
        if not compiled:
            # At the first clause, not at import: a command starts without these.
            compiled.append(re.compile(pattern, re.IGNORECASE))
        for match in compiled[0].finditer(clause):
            slot = build(match)
            if slot is not None:
                return slot
        return None

    return apply


def _entity(match: re.Match[str]) -> str | None:
    """Return whom a clause is about; None if its subject is a pronoun or a word that opens a sentence."""
    found = match.groupdict()
    if found.get("name"):
        name = found["name"]
        return None if name.split()[0].casefold() in NOBODY else name
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


def _verb(match: re.Match[str]) -> Slot | None:
    entity, verb = _entity(match), match["verb"].casefold()
    if entity is None or (entity != USER and verb in BASES and not _PLURAL.search(entity)):
        # "The release train leaves": a bare verb behind one thing is a noun.
        return None
    return Slot(entity, BASE_FORMS.get(verb, verb), trimmed(match["value"]))


def _attribute(match: re.Match[str]) -> Slot | None:
    """Read "my X is Y" (X of the user), "Ann's X is Y" and "my Z's X is Y" (X of Ann, of Z)."""
    found = match.groupdict()
    value = trimmed(_CONTRAST.sub("", found["value"]))
    owner = found.get("owner") or found.get("thing") or found.get("person")
    if not value or (owner or "").split(" ")[0].casefold() in NOBODY or value.casefold().startswith("not "):
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
    return KEYS.get(folded, noun)


def _state(match: re.Match[str]) -> Slot | None:
    """Read what somebody is: so old, on a diet, of a profession."""
    entity, value = _entity(match), trimmed(match["value"])
    if not entity:
        return None
    person = match.groupdict().get("owned") is None or entity.split()[-1].casefold() in KIN
    age = _AGE.match(value)
    if age and person:
        return Slot(entity, "age", age[1])
    diet = DIETS.match(value)
    if diet:
        return Slot(entity, "diet", diet[0])
    job = _JOB.match(value)
    if job and person and job["noun"].casefold() not in NOT_JOBS and job[0].split()[-1][0].islower():
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
    rule = _TAIL.sub("", trimmed(found["value"]))
    return Slot("convention", rule, how) if len(rule) > 2 else None


def _liking(match: re.Match[str]) -> Slot | None:
    entity = _entity(match)
    verb = next((verb for verb, pattern in LIKINGS if pattern.fullmatch(match["liking"])), None)
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
    return Slot(named if named.casefold() not in NOBODY and named else USER, key, match["value"])


def _fronted(match: re.Match[str]) -> Slot | None:
    """Read what puts the object first: "Pilates I love", "Tidal is what I use"."""
    return Slot(USER, BASE_FORMS.get(match["verb"].casefold(), match["verb"].casefold()), match["value"])


_TIME = lazy(r"(?:next |last |this )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|month|year|\d)", re.IGNORECASE)
_AGE = lazy(r"(\d{1,3})(?: years? old| last week| today| this \w+| (?:last|next|in|on) .*)?(?: and .*)?$")
_JOB = lazy(
    r"an? (?P<job>(?:[\w-]+ ){0,3}?(?P<noun>[\w-]*(?:er|or|ist|ian|eer|nurse|man|woman|ant|chef|judge|clerk|coach|"
    r"pilot|cook|monk|priest|surgeon|vet|guide|scribe|smith|wright)))\b"
)
_TAIL = lazy(r",? (?:please|ok|okay|thanks|will you|would you)$", re.IGNORECASE)
_CHANNEL = lazy(
    r"(?:(?:'?s)?(?:^| )(?:(?:work|office|home|direct|new) )?(?:mobile|phone|cell|telephone|number|tel"
    r"|e-?mail|mail|contact)"
    r"(?: (?:number|address))?)?(?:,?(?:^| )(?:is|at|on|under|to|via)|:)?(?: now)?\W*$",
    re.IGNORECASE,
)
_REACHED = lazy(
    rf"(?P<name>{_NAME})$|(?:\b(?:my|our|the) |^)(?P<who>(?!.*\b(?:me|us|my|our|the)$){_WORD}(?: {_WORD})?)$",
    re.IGNORECASE,
)
_CONTRAST = lazy(r",?(?: now)? (?:instead of|rather than|(?:and |but )?not|but)\b.*$", re.IGNORECASE)
_PLURAL = lazy(r"(?:s|people|children|men|women|folk|staff|police)$", re.IGNORECASE)
_LIKING = "|".join(rf"(?:{pattern.pattern})" for _, pattern in LIKINGS)
_IS = (
    r"(?:(?:'s| is| are| was| were) (?:going to be )?(?:(?:now|actually|really|still|currently|at|on|moved to|"
    r"changed to|being moved to|called|named|in|set for|due(?: on)?|planned for|scheduled for) )*"
    r"|(?: has| have| got| was| is)*(?: been| being)? (?:moved|changed|switched|renamed|rescheduled"
    r"|pushed)(?: back)? "
    r"to (?:the )?| = |(?: now)? (?:starts|turns|falls)(?: (?:at|on))? )"
)
_NOUN = r"(?P<noun>[\w-]+(?: [\w-]+){0,5}?)"
_END_OF_CHOICE = r"(?P<value>[^,;:]{1,80}?) (?:over|instead of|rather than|and not) (?P<other>[^,;:]{1,80})"
_CHOSEN = (
    r"\b(?:decided|chose|chosen|picked|selected|settled|opted|agreed|went|going|gone|go|voted|plumped|signed up|"
    r"committed)"
)
_TO = r"(?: to| on| for| with| that(?: we(?:'ll| will)?)?)"

_RULES: tuple[Rule, ...] = (
    _rule(
        r"^(?:\W*(?:so|and|also|please|but|oh|btw|we|you|ok|hey|anyway|right|well|then|remember to|make sure to"
        r"|be sure to|one rule|new rule|rule)[\s,:]+)*"
        r"(?P<how>always|never|from now on|by default|don'?t (?:you )?ever|do not ever)\b,? " + _VALUE,
        _convention,
    ),
    _rule(r"^\W*(?P<value>\w.{2,200}?),? (?P<how>from now on|by default)$", _convention),
    _rule(
        r"\b(?:switched|switching|migrated|migrating|changed|moved over|went)(?: over)? from (?P<other>.{1,60}?) to "
        + _VALUE,
        _choice,
    ),
    _rule(r"\b(?:replaced|swapped) (?P<other>[^,;]{1,60}?) (?:with|for|by) " + _VALUE, _choice),
    _rule(
        r"\b(?:switched|switching|migrated|migrating|moved over|changed over|gone over)(?: \w+){0,3}? to " + _VALUE,
        _decision,
    ),
    _rule(rf"{_CHOSEN}(?: on| for| with)? {_END_OF_CHOICE}", _choice),
    _rule(rf"\b(?:decided|agreed|opted|voted|chose|committed|resolved){_TO} {_VALUE}", _decision),
    _rule(r"\b(?:went|going|gone|go|settled|plumped|signed up)(?: on| for| with) " + _VALUE, _decision),
    _rule(r"\b(?:decided|chose|chosen|picked|selected) " + _VALUE, _decision),
    _rule(
        r"\b(?:use|using) (?P<value>[\w .+#-]{1,60}?) (?:over|instead of|rather than) (?P<other>[\w .+#-]{1,60})",
        _choice,
    ),
    # Names and how somebody is reached.
    _rule(
        r"\b(?:call me|my name is|my name's|i go by|i'm called|i am called|everyone calls me) " + _VALUE,
        _filled("name", bare=True),
    ),
    _rule(
        rf"(?:\b(?:my|our|the) (?P<owned>{_NP})|\b(?P<name>{_NAME})){_ADVERBS}"
        rf"(?:{_BE}{_ADVERBS} (?:called|named|known as)|{_ADVERBS} (?:goes by(?: the name(?: of)?)?|answers to"
        rf"|is called))"
        rf" {_VALUE}",
        _filled("name", bare=True),
    ),
    _rule(rf"^(?:my |our |the )?(?P<owned>{_NP})(?:'s)? name is {_VALUE}", _filled("name", bare=True)),
    _rule(
        rf"\b(?:calls?|nicknamed?) (?:my|our) (?P<owned>{_NP}) (?P<value>(?-i:[A-ZÀ-Þ])[\w-]+)",
        _filled("name", bare=True),
    ),
    _rule(
        rf"\b(?:we|I)(?:'ve| have)? (?:named|called|christened|nicknamed) (?:my|our|the) (?P<owned>{_NP}) "
        r"(?P<value>(?-i:[A-Z])[^,;]{0,60})",
        _filled("name", bare=True),
    ),
    _rule(
        rf"\b(?:my|our|the) (?P<owner>{_NP})(?:'s|s') {_NOUN}{_IS}{_VALUE}",
        _attribute,
    ),
    _rule(rf"\b(?P<person>{_NAME})(?:'s|s') {_NOUN}{_IS}{_VALUE}", _attribute),
    _rule(rf"^(?P<thing>[\w-]+(?: [\w-]+)?)'s {_NOUN}{_IS}{_VALUE}", _attribute),
    _rule(rf"^(?:the )?{_NOUN} (?:for|of) (?:the|my|our) (?P<owner>{_NP}){_IS}{_VALUE}", _attribute),
    # What somebody is, where and with whom.
    _rule(
        rf"(?:{_SUBJECT}{_BE}?|^){_ADVERBS} ?\b(?:born on|was born on"
        rf"|born in) {_VALUE}",
        _filled("birthday", bare=True),
    ),
    _rule(
        rf"{_SUBJECT}{_BE}?{_ADVERBS} (?:lives? in|(?<=ve )lived in|living in|based in|based at|reside[sd]? in|"
        rf"(?:moved?|moves|moving|relocated|relocating)(?: back| over| house)?(?: from (?-i:[A-Z])[\w-]+)? to"
        rf"|settled in|lives? at|lives? near) "
        rf"{_VALUE}",
        _filled("location", bare=True),
    ),
    _rule(
        rf"(?:{_SUBJECT}{_BE}?{_ADVERBS} |^(?:i )?)(?:(?:grew|grown) up in"
        r"|(?:born and )?(?:raised|bred) in|originally from"
        rf"|(?:come|comes) (?:originally )?from) {_VALUE}",
        _filled("hometown", bare=True),
    ),
    _rule(
        rf"{_SUBJECT}{_BE}{_ADVERBS} from (?P<value>(?-i:[A-ZÀ-Þ]).{{0,100}})",
        _filled("hometown", bare=True),
    ),
    _rule(
        rf"(?:{_SUBJECT}{_BE}?{_ADVERBS} |^)(?:works? (?:at|for)|working (?:at|for)|(?<=ve )worked (?:at|for)|joined|"
        rf"started (?:working )?(?:at|with)|employed (?:at|by)|hired by) {_VALUE}",
        _filled("employer", bare=True),
    ),
    _rule(rf"{_SUBJECT}{_BE}?{_ADVERBS} (?:work|works|working) as (?:an? )?{_VALUE}", _filled("job", bare=True)),
    _rule(rf"{_SUBJECT}{_BE}?{_ADVERBS} (?:allergic to|(?:has|have) an allergy to) {_VALUE}", _filled("allergy")),
    _rule(
        rf"{_SUBJECT}(?:{_BE}{_ADVERBS} fluent in|{_ADVERBS} speaks?)(?: only| just| mainly)? {_VALUE}",
        _filled("language"),
    ),
    _rule(rf"{_SUBJECT}{_ADVERBS} (?P<value>(?:don't|do not|doesn't|does not|never) eat .{{2,60}})", _filled("diet")),
    _rule(rf"(?:{_SUBJECT}(?:{_BE}|(?: just)? turned)|^been){_ADVERBS} {_VALUE}", _state),
    # Likings, in the verb's own words or in others.
    _rule(
        rf"{_SUBJECT}(?:'d| would) (?:rather have|rather|sooner|take) (?P<value>[^,;]{{2,80}}?) (?:over|than) "
        r"(?P<other>[^,;]{2,60})",
        _rather,
    ),
    _rule(rf"{_SUBJECT}(?:'d| would) (?:much )?(?:rather have|rather|prefer) {_VALUE}", _filled("prefer")),
    _rule(
        rf"(?:^\W*(?=not |a |big |huge )|{_SUBJECT}{_BE}?{_ADVERBS}) ?\b(?P<liking>{_LIKING}) {_VALUE}",
        _liking,
    ),
    _rule(
        r"^(?P<value>[\w' -]{2,60}) (?:is|are) (?:torture|hell|a nightmare|unbearable) (?:for|to) (?:me"
        r"|my (?P<owned>[\w-]+)|(?P<name>\w+))",
        _filled("hate"),
    ),
    _rule(r"^(?P<value>[\w' -]{2,40} over [\w' -]{2,40})$", _filled("prefer")),
    _rule(
        r"^(?P<value>[\w' -]{2,40}?),? (?:is what |are what )?I (?:absolutely |really )?(?P<verb>love|like|hate"
        r"|enjoy|prefer|use|play|drive)$",
        _fronted,
    ),
    _rule(r"(?P<value>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,32}){1,4})", _contact),
    _rule(r"(?P<value>\+\d[\d -]{8,20}\d|\b\d{3}-\d{4}\b)", _contact),
    _rule(rf"\b(?:my|our) {_NOUN}{_IS}{_VALUE}", lambda match: _own(match)),
    _rule(rf"^(?P<value>[\w' .-]{{2,50}}?) (?:is|are) (?:my|our) {_NOUN}(?: of choice)?$", _attribute),
    _rule(rf"^(?:[\w ]{{1,40}}: )?\W*(?P<noun>favou?rite [\w ]+?): {_VALUE}", _attribute),
    _rule(
        rf"\bthe {_NOUN} (?:is now|was moved|has moved|moved|has changed|changed|was changed)(?: to| at)? {_VALUE}",
        _attribute,
    ),
    _rule(rf"{_SUBJECT}(?:'ve|'s)?{_ADVERBS} (?P<verb>{VERBS}|(?<=ve )got|(?<='s )got) (?!\w+ed\b){_VALUE}", _verb),
)


def _own(match: re.Match[str]) -> Slot | None:
    """Read "my X is Y"; of people only what names them: "my brother is in Oslo" is no brother called Oslo."""
    noun = match["noun"].casefold()
    if noun.split()[-1] in KIN and not re.match(_NAME, trimmed(match["value"])):
        return None
    return _attribute(match)
