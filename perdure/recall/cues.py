"""Words by which a prompt says what it wants, and a memory what it is about; texts are folded before."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

Cues = Mapping[str, re.Pattern[str]]


def _any(words: str, *, first: bool = False, signs: str = "") -> re.Pattern[str]:
    """Return a pattern for any of the words ("_" stands for a space, "*" for any ending), or any of the signs."""
    choices = "|".join(re.escape(word).replace("_", " ").replace(r"\*", r"\w*") for word in words.split())
    start = r"^\W*" if first else r"\b"
    listed = rf"{start}(?:{choices})\b"
    return re.compile(f"{listed}|{signs}" if signs else listed)


FORMS: Final[Cues] = {
    "asks": _any(
        """
        what when where who whose which why how is are do does did can could should will would was wer wann wo wie
        welche* qui quand ou comment quel* que quien cuando donde como cual
        """,
        first=True,
        signs="[?\uff1f\u5417]",
    ),
    "when": _any(
        "when what_time what_day what_date how_long until wann quand cuando a_que_hora",
        signs="\u51e0\u70b9|\u4ec0\u4e48\u65f6\u5019|\u3044\u3064",
    ),
    "where": _any("where which_place address wo wohin donde", signs="\u54ea\u91cc|\u3069\u3053"),
    "who": _any("who whose whom name wer wem qui quien", signs="\u8c01|\u8ab0"),
    "much": _any(
        """
        how_many how_much how_old how_far how_big how_tall what_number what_size what_price wie_viel* combien cuant*
        """,
        signs="\u591a\u5c11|\u3044\u304f\u3089",
    ),
    "may": _any(
        """
        can could should shall may is_it_ok is_it_okay is_it_alright is_it_safe is_it_fine safe darf kann soll
        puis-je peux puedo debo
        """
    ),
    "general": _any(
        """
        what_does what's_a what_is_a what_is_the_difference difference_between explain meaning_of synonym translate
        who_wrote who_invented who_painted in_general how_do_you how_does define formula syntax rhyme joke poem
        """
    ),
    "own": _any(
        """
        my mine i i'm i've me our ours we us mein* ich wir unser* mir mich mon ma mes je nous notre mi mis yo nuestr*
        """,
        signs="\u6211|\u79c1",
    ),
    "task": _any(
        """
        write draft make book order buy plan set send schedule add create fix cook suggest recommend find give pick
        remind schreib mach bestell ecris fais escribe haz
        """,
        first=True,
    ),
    "again": _any("again remind remember did_i do_i have_i was_it usual did_we do_we nochmal"),
    "chat": _any(
        """
        thanks thank_you ta cheers ok okay lol haha good_morning good_night good_evening morning hi hey hello night bye
        danke merci gracias
        """,
        first=True,
    ),
}
"""What a prompt asks for."""
MARKS: Final[Cues] = {
    "rule": _any(
        """
        never always don't do_not must mustn't only no_one nobody not_allowed can't cannot won't without unless nie
        niemals immer nur jamais toujours nunca siempre kein*
        """,
        signs="\u4e0d|\u306a\u3044",
    ),
    "body": _any(
        """
        allerg* intoleran* coeliac celiac vegan vegetarian asthma* diabet* insulin pregnan* medic* tablet* pill pills
        dose blood heart nut nuts gluten lactose epilep* halal kosher doctor
        """
    ),
    "time": _any(
        """
        monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
        september october november december every weekly daily morning evening night noon week month until since
        o'clock montag* dienstag* mittwoch* donnerstag* freitag* samstag* sonntag*
        """,
        signs=r"\d{1,2}(?::\d\d|am|pm)\b|\u6708|\u65e5|\u70b9",
    ),
    "number": _any(
        """
        two three four five six seven eight nine ten twelve twenty thirty forty fifty hundred thousand zwei drei vier
        deux trois dos tres
        """,
        signs=r"\d",
    ),
    "liking": _any("like likes love loves hate hates prefer* favourite favorite can't_stand want* mag aime gusta"),
}
"""What a memory is about."""
MATCHED: Final = (
    ("when", "time"), ("much", "number"), ("may", "rule"), ("may", "body"),
    ("task", "rule"), ("task", "body"), ("task", "time"),
)  # fmt: skip
"""A form and a mark that answer each other."""
