"""What a text speaks of: words and pairs of words that could name a subject, and in which way it speaks of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from perdure.regex import lazy
from perdure.text.normalise import fold
from perdure.text.stopwords import STOP_WORDS

MIN_LETTERS = 4
"""Shorter words seldom name a subject by themselves; in a pair they may: "web app"."""
LIKES, DISLIKES, SPEAKS = "likes", "dislikes", "speaks"
NEAR = 4
"""Words between "love" and what is loved at the most."""

_WORD = lazy(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_SENTENCE_END = lazy(r"(?<=[.!?;])\s+|\n+")
_TOKEN = lazy(r"\w(?:\S*\w)?")
_CLAUSE = lazy(r"[.,;:!?()\u2014]|(?: - )|(?:- )|\b(?:and|but|so|or|that|because)\b", re.IGNORECASE)
_GENERIC_WORDS = """
able absolute absolutely accept acceptance accepted according account actual actually add advice afraid ago agree
allow almost along already alright although always amazed amazing amount another anymore anyone anything anyway
appreciate appreciated area around ask aspect attempt attention away awesome awhile awkward back bad balance basically
beautiful beauty become becoming begin beginning belief believe beloved best bet better big bit blast blessed bond
bonding boost boy brave bright bring bringing brought build building bunch busy buy call calling calm calming came
can't cannot care careful case catch cause certain challenge challenging chance change changed chat check checked
cherish choice choose clear close color colour come comfort coming common complete completely connect connected
connection consider continue contribute contribution cool could couple courage course crazy create created creating
curious cute daily damn day deal dear decide decided decision deep deeply definite definitely detail determined
difference different difficult direction do doing don't done doubt down dream drive due each early easier easily easy
effect effort either emotion encourage encouraged encouragement encouraging end energy enjoy enjoyed enjoying enough
entire especially even evening event ever every everybody everyone everything everywhere exact exactly example excite
excited excitedly excitement exciting expect experience explain explore exploring express expressing extra extremely
eye face faced facing fact fall fantastic far fast fave favorite favourite feel feeling felt few figure final finally
find finding fine finish finished first fit fix focus focused folks follow following force forever forget form forward
found free freedom fresh friend fulfilled fulfilling fulfillment full fun funny further future gain gave generally get
getting giant gift girl give given giving glad glimpse go goal goes going gone gonna good gosh got gotta grab grateful
great greatest group grow growing growth guess guide guy hair half hand happen happened happening happiness happy hard
harder hardest hate have haven't heading hear heard heart hectic hell hello help helped helpful helping here hesitate
hey hi high highlight home hope hopefully hoping hour huge human humble humbled hurt idea imagine impact important
improve improvement incredible incredibly inspiration inspire inspired inspiring instead intense interest interested
interesting involved issue it's journey joy joyful just keep keeping kept kind kinda kindness knew know knowing known
lack large last lately later laugh lead learn learned learning least leave left less let letting level life light like
liked likely line list listen little live living local long longer look looked looking lose lost lot love loved lovely
loving low luck lucky made main make making man manage many matter maybe mean meaning meaningful meant meet meeting
memories memory men mention mentioned met middle might mind minute miss mistake mix mom moment month mood more morning
most motivate motivated motivating motivation mouth move moved moving much mum must name near nearby nearly necessary
need needed negative neither nervous never new next nice night none nope normal note nothing notice number obstacle
obvious obviously offer often okay old one open opened opening opportunity option organization others otherwise
outside overall own part particular pass passed passion passionate past pay peace peaceful people perfect perhaps
period person personal perspective photo pic picture piece place plan planning plenty plus point positive possible
power powerful pray precious prefer prepare present pretty previous probably problem proceed process progress project
promise proper proud provide pull purpose pursue push pushing put putting question quick quickly quiet quite raise ran
rather reach reaching read ready real realise realize realized really reason recent recently relax remember remind
reminded reminder reminding represent representing rest result return rewarding right road role rough run safe said
same saw say saying scared scary search searching seat second see seeing seek seem seemed seen self sense serve served
serving set setting several share shared sharing short show showed showing sick side sight sign silly similar simple
simply since single sit situation skill slow small smile some somebody someday someone something sometimes somewhere
soon sorry sort soul sound space speak special spend spending spent spirit spot spread stage stand start started
starting state stay staying step still stoked stop stories story straight strange strength strong struggle stuff style
subject succeed success successful such suggest super support supported supporting supportive suppose sure surprise
sweet switch system take taken taking talk talked talking team tell telling term terrible than thank thankful that's
there's thing think thinking third though thought thrilled throughout thru time tiny tired today together told
tomorrow tonight tons took top total totally touch touched tough toward transition treat tricky tried trip true truly
trust truth try trying turn turned type ugly understand understanding unique unless upon upset use used useful using
usual usually various version vibe view visit wait waiting wake walk wanna want wanted warm wasn't watch way we're
we've week weekend welcome well went weren't whatever whenever wherever whether whole wild win wish without woman
women won't wonder wonderful word work worked working world worried worry worse worst worth worthwhile would wouldn't
wow yeah year yep yesterday yet young yours zero
"""
_LEADING_WORDS = "a an the my our his her their with to in at from of about for near visit love see"
_LEADS_TO = frozenset(_LEADING_WORDS.split())
_GENERIC = frozenset(_GENERIC_WORDS.split())
_LIKING = lazy(
    r"\b(?:love|like|enjoy|prefer|adore|(?:big )?fan of|passionate about|fond of|obsessed with|crazy about|"
    r"(?:am|i'm|are|we're|been|really|so|very|super) into)$"
)
_DISLIKING = lazy(r"\b(?:hate|dislike|can't stand|cannot stand|don't like|do not like|not (?:a fan of|into))$")
_OFTEN = lazy(
    r"\b(?:every|each) (?:single )?(?:day|morning|evening|night|week|weekend|month|year|other day|\w+day)s?\b"
    r"|\b(?:usually|regularly|daily|weekly|monthly|often|most (?:days|mornings|evenings|nights|weekends))\b"
    r"|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b"
    r"|\b(?:once|twice|\w+ times) (?:a|per) (?:day|week|month|year)\b"
)


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that a text speaks of.

    Attributes:
        key: what its forms have in common: "dance studio" and "dance studios" have one key.
        form: as the text has it, folded.
        way: "likes", "dislikes" or "speaks".
        name: whether it is written like a name and could be what somebody is called by: "Thanks, Gina".
        said: the sentence that it stands in.
        wish: what is liked or disliked, word by word to the end of the sentence: only all of it is what was meant.
    """

    key: str
    form: str
    way: str
    name: bool = False
    said: str = ""
    wish: tuple[str, ...] = ()


def topics(text: str) -> list[Topic]:
    """Return what a text speaks of, each once: words that say something, and two of them side by side."""
    found: dict[str, Topic] = {}
    for sentence in _SENTENCE_END.split(text):
        start = 0
        for end, following in (*(match.span() for match in _CLAUSE.finditer(sentence)), (len(sentence),) * 2):
            for topic in _of_clause(sentence, start, end):
                # Once in the middle of a sentence in small letters, and it is no name.
                if topic.key not in found or (found[topic.key].name and not topic.name):
                    found[topic.key] = topic
            start = following
    return list(found.values())


def _of_clause(sentence: str, start: int, end: int) -> Iterator[Topic]:
    raw = list(_WORD.finditer(sentence, start, end))
    words = [fold(match[0]) for match in raw]
    telling = [_names_something(word) for word in words]

    def topic(first: int, last: int, called: bool) -> Topic:
        key, form = (" ".join(map(part, words[first : last + 1])) for part in (_stem, _bare))
        near = max(0, first - NEAR)
        way, cue = _way(words[near:first])
        wish = () if way == SPEAKS else tuple(map(fold, _TOKEN.findall(sentence[raw[near + cue - 1].end() :])))
        return Topic(key, form, way, called, sentence.strip(), wish)

    for at in range(len(words)):
        if telling[at] and len(words[at]) >= MIN_LETTERS:
            called = raw[at][0].istitle() and (at == 0 or words[at - 1] not in _LEADS_TO)
            yield topic(at, at, called)
        if at and telling[at] and telling[at - 1]:
            yield topic(at - 1, at, False)


def frequent(text: str) -> bool:
    """Return whether a text says that something is done again and again."""
    return bool(_OFTEN.search(fold(text)))


def _names_something(word: str) -> bool:
    bare = _bare(word)
    return (
        len(bare) > 2
        and "'" not in bare
        and bare not in STOP_WORDS
        and _GENERIC.isdisjoint((bare, bare.removesuffix("s")))
    )


def _way(before: list[str]) -> tuple[str, int]:
    """Return how something is spoken of, and behind how many of the words before it the cue of that ends."""
    for end in range(len(before), 0, -1):
        words = " ".join(before[:end])
        if _DISLIKING.search(words):
            return DISLIKES, end
        if _LIKING.search(words):
            return SPEAKS if {"not", "don't", "never", "would", "i'd", "we'd"} & set(before) else LIKES, end
    return SPEAKS, 0


def _bare(word: str) -> str:
    return word.removesuffix("'s")


def _stem(word: str) -> str:
    word = _bare(word)
    for ending in ("ies", "ing", "ers", "er", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    doubled = len(word) > 4 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word
