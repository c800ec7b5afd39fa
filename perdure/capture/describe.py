"""Step four: category, slot, reason, decay class and tags of a statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perdure.capture.statements import Statement
from perdure.text.normalise import fold

USER = "user"
MAX_FIELD = 100


@dataclass(frozen=True, slots=True)
class Slot:
    """What a statement says of what: entity, key and value."""

    entity: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Description:
    """What is known about a statement from its words.

    Attributes:
        category: one of the five categories.
        slot: what it fills, if that can be made out.
        why: the reason that was given.
        decay_class: how long it should live.
    """

    category: str
    slot: Slot | None
    why: str | None
    decay_class: str


def describe(statement: Statement) -> Description:
    """Describe a statement."""
    text = statement.text.rstrip(" .!")
    slot = next((found for rule in _RULES if (found := rule(text)) is not None), None)
    reason = _REASON.search(text)
    category = _category(statement, slot)
    return Description(category, slot, _clipped(reason[1]) if reason else None, _decay_class(text, slot))


def _category(statement: Statement, slot: Slot | None) -> str:
    folded = fold(statement.text)
    # The order of the hybrid-memory system: a decision is often worded as a preference, not the other way round.
    if statement.cue == "convention" or (slot and slot.entity in ("decision", "convention")):
        return "decision"
    for category, pattern in _CATEGORIES:
        if pattern.search(folded):
            return category
    return "other" if statement.cue == "remember" and slot is None else "fact"


def _decay_class(text: str, slot: Slot | None) -> str:
    key = slot.key.casefold() if slot else ""
    folded = fold(text)
    if slot and (slot.entity in ("decision", "convention") or any(word in key for word in _LASTING)):
        return "permanent"
    for decay_class, pattern in _DECAY:
        if pattern.search(folded):
            return decay_class
    return "stable"


_REASON = re.compile(
    r"\b(?:because |since |due to |so that |as (?=(?:I|we|it|he|she|they|the|my|our)\b))([^.;]{4,200})", re.IGNORECASE
)
_BEHIND = re.compile(
    r" (?:now|today|currently|again|already|these days|since|until|because|for now|for the|last|this|next|"
    r"as (?:an?|the)|with|in \d)\b.*$",
    re.IGNORECASE,
)
_CATEGORIES = (
    ("decision", re.compile(
        r"\b(?:decided|chose|chosen|went with|going with|selected|settled on|opted|agreed on|always use|never use|"
        r"will use|switched)\b|\bdecision\b"
    )),
    ("preference", re.compile(
        r"\b(?:prefer\w*|like|likes|love|loves|hate|hates|dislike|enjoy|want|favou?rite|rather|can't stand|allergic|"
        r"vegetarian|vegan)\b"
    )),
    ("entity", re.compile(r"\b(?:is|are) (?:called|named)\b|\bname is\b|\bcall me\b|e-?mail|phone|@\w|\+\d[\d -]{8,}")),
    ("fact", re.compile(r"\b(?:born|birthday|lives?|works?|is|are|was|has|have|moved)\b")),
)  # fmt: skip
_LASTING = (
    "name",
    "email",
    "birthday",
    "born",
    "phone",
    "language",
    "location",
    "architecture",
    "decision",
    "allergy",
)
_NOBODY = frozenset(["it", "this", "that", "there", "he", "she", "they", "we", "you", "i", "which", "who", "what"])
_DECAY = (
    ("permanent", re.compile(r"\b(?:decided|architecture|always use|never use|birthday|allergic)\b")),
    ("session", re.compile(r"\b(?:currently debugging|right now|this session)\b")),
    ("active", re.compile(r"\b(?:working on|need to|to-?do|blocker|sprint|this week)\b")),
    ("checkpoint", re.compile(r"\b(?:checkpoint|preflight)\b")),
)

Rule = Callable[[str], Slot | None]


def _rule(pattern: str, build: Callable[[Mapping[str, str]], Slot | None]) -> Rule:
    compiled = re.compile(pattern, re.IGNORECASE)

    def apply(text: str) -> Slot | None:
        match = compiled.search(text)
        return build({name: _clipped(value or "") for name, value in match.groupdict().items()}) if match else None

    return apply


def _place(key: str) -> Callable[[Mapping[str, str]], Slot]:
    """Fill a slot whose value is a name: what follows it in the sentence does not belong to it."""
    return lambda match: Slot(USER, key, _clipped(_BEHIND.sub("", match["value"])))


def _whose(key: str) -> Callable[[Mapping[str, str]], Slot | None]:
    """Fill such a slot of somebody else: "my sister lives in ...", "Ann works at ..."."""

    def build(match: Mapping[str, str]) -> Slot | None:
        owner = (match["owner"] or match["name"]).lower()
        value = _clipped(_BEHIND.sub("", match["value"]))
        return Slot(owner, key, value) if owner not in _NOBODY else None

    return build


def _clipped(text: str) -> str:
    return text.strip(" ,.;:!\"'")[:MAX_FIELD]


def _own(key: str) -> Callable[[Mapping[str, str]], Slot]:
    return lambda match: Slot(USER, key, match["value"])


def _choice(match: Mapping[str, str]) -> Slot:
    return Slot("decision", f"{match['value']} over {match['other']}", match["value"])


def _possessive(match: Mapping[str, str]) -> Slot | None:
    """Fill "my X is Y" (the user's X) and "my X's Y is Z" or "Ann's Y is Z" (X's or Ann's Y)."""
    owner, key = match.get("owner", ""), match["key"]
    key = re.sub(r"^(?:new|current|own|actual) ", "", key, flags=re.IGNORECASE).lower()
    if not key or not match["value"]:
        return None
    return Slot(owner.lower() if owner else USER, key, match["value"])


_VALUE = r"(?P<value>[^.;]{1,200})"
_BECOMES = (
    r"(?:is|are|was|were) (?:now |actually |really |moved to |changed to |being moved to |called |named |at |on |in )*"
    r"|'s (?:now |called )|(?:has |have |got )?(?:been )?(?:moved|changed|switched|renamed|rescheduled|pushed)"
    r"(?: back)? to "
    r"|(?:now )?(?:starts|turns|falls) (?:at |on )?"
)
_RULES: tuple[Rule, ...] = (
    _rule(
        r"\b(?:use|using|chose|picked|prefer|went with|go with|going with) (?P<value>[\w .+#-]{1,60}?) "
        r"(?:over|instead of|rather than) (?P<other>[\w .+#-]{1,60}?)(?= because| since| for| as\b|[,.;]|$)",
        _choice,
    ),
    _rule(
        r"\b(?:decided|chose|went with|going with|picked|selected|settled on|opted for|agreed on) "
        r"(?:to |on |that |for )*(?P<value>[^.;]{1,200}?)(?= because| since| due to| so that|[,.;]|$)",
        lambda match: Slot("decision", match["value"].lower(), match["value"]),
    ),
    _rule(
        r"\b(?P<key>always|never|from now on|must|by default)\b,? (?P<value>[^.;]{3,200})",
        lambda match: Slot("convention", match["value"].lower(), match["key"].lower()),
    ),
    _rule(rf"\b(?:call me|my name is|i go by|i'm called) {_VALUE}", _own("name")),
    _rule(
        r"\b(?:i(?:'m| am)?|we(?:'re| are)?) (?:now |still |currently |actually |just )*"
        r"(?:live[ds]?|living|based|reside|moved|relocated|moving)(?: back| over)? (?:in|to|at|near) "
        r"(?P<value>[^.;,]{1,100})",
        _place("location"),
    ),
    *(
        _rule(
            rf"(?:\bmy (?P<owner>[\w-]{{1,30}})|(?-i:\b(?P<name>[A-Z][\w-]{{1,30}}))) {verb} "
            r"(?P<value>[^.;,]{1,100})",
            build,
        )
        for verb, build in (
            (r"(?:now |still )?(?:lives? in|moved to|moves to|is based in)", _whose("location")),
            (r"(?:now |still )?(?:works? (?:at|for)|joined)", _whose("employer")),
            (r"(?:now |still )?works? as (?:an? )?", _whose("job")),
        )
    ),
    _rule(
        r"\bi (?:now |still |currently |just |recently )*(?:work (?:at|for)|joined|started (?:working )?at|was hired "
        r"by) (?P<value>[^.;,]{1,100})",
        _place("employer"),
    ),
    _rule(r"\bi (?:now |still |currently )*work(?:ing)? as (?:an? )?(?P<value>[^.;,]{1,100})", _place("job")),
    _rule(r"\bi was born (?:on|in) (?P<value>[^.;,]{1,60})", _own("birthday")),
    _rule(r"\bi(?:'m| am) (?:now )?(?P<value>\d{1,3}) years old", _own("age")),
    _rule(r"\bi(?:'m| am) allergic to (?P<value>[^.;]{1,100})", _own("allergy")),
    _rule(
        rf"\b(?:my|our) (?P<owner>[\w-]{{1,30}})(?:'s|s') (?P<key>[\w -]{{1,40}}?) (?:{_BECOMES}){_VALUE}",
        _possessive,
    ),
    _rule(
        rf"\b(?P<owner>[A-Z][\w-]{{1,30}})(?:'s|s') (?P<key>[\w -]{{1,40}}?) (?:{_BECOMES}){_VALUE}",
        _possessive,
    ),
    _rule(rf"\b(?:my|our) (?P<key>[\w -]{{1,40}}?) (?:{_BECOMES}){_VALUE}", _possessive),
    _rule(
        r"\bthe (?P<key>[\w -]{1,40}?) (?:is now|was moved|has moved|moved|changed|has changed|was changed) "
        rf"(?:to |at )?{_VALUE}",
        _possessive,
    ),
    _rule(
        r"\bi (?:really |much |also |still |now )?(?P<key>prefer|like|love|hate|dislike|enjoy|use|own|drive|play) "
        rf"{_VALUE}",
        lambda match: Slot(USER, match["key"].lower(), match["value"]),
    ),
    _rule(r"(?P<value>[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,32}){1,4})", _own("email")),
    _rule(r"(?P<value>\+\d[\d -]{8,20}\d)", _own("phone")),
)
