"""The words that name times in English, German and Spanish.

All are folded (see `perdure.text.normalise.fold`). In a table a comma stands between entries, a bar between
words for the same. The fields that are no tables are parts of regular expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NEVER = "(?!)"
"""A regular expression that nothing matches."""


@dataclass(frozen=True, slots=True)
class Language:
    """How a language names times.

    Attributes:
        months: a table of twelve.
        weekdays: a table of seven, from Monday on.
        seasons: a table of four, from spring on.
        units: a table of day, week, weekend, month, quarter and year, in every form.
        counts: a table of the numbers from one to twelve.
        few: words for two to five.
        near: phrases for single days, by their distance from today.
        ago: what stands before and behind "three weeks".
        last: the word before the noun.
        this: likewise.
        next: likewise.
        latest: prepositions and articles; what follows them is the latest one that has begun.
        over: "last" where it stands behind the noun.
        coming: "next" where it stands behind the noun.
    """

    months: str
    weekdays: str
    seasons: str
    units: str
    counts: str
    few: str
    near: Mapping[str, int]
    ago: tuple[str, str]
    last: str
    this: str
    next: str
    latest: str
    over: str = NEVER
    coming: str = NEVER


_ENGLISH = Language(
    months="january, february, march, april, may, june, july, august, september, october, november, december",
    weekdays="monday, tuesday, wednesday, thursday, friday, saturday, sunday",
    seasons="spring, summer, autumn|fall, winter",
    units="day|days, week|weeks, weekend|weekends, month|months, quarter|quarters, year|years",
    counts="a|an|one, two|a couple of|couple of, three, four, five, six, seven, eight, nine, ten, eleven, twelve",
    few="a few|few",
    near={
        **{"the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "last night": -1},
        **{"today": 0, "tonight": 0, "tomorrow": 1},
    },
    ago=("", " ago"),
    last="last",
    this="this",
    next="next",
    latest="in|on|since|during|of|until|by|from|before|after"
    "|(?:in|during|since|until) the(?= (?:spring|summer|autumn|fall|winter))",
)
_GERMAN = Language(
    months="januar|janner, februar, marz|maerz, april, mai, juni, juli, august, september, oktober, november, dezember",
    weekdays="montag, dienstag, mittwoch, donnerstag, freitag, samstag|sonnabend, sonntag",
    seasons="fruhling|fruhjahr|fruehling, sommer, herbst, winter",
    units="tag|tage|tagen, woche|wochen, wochenende|wochenenden, monat|monate|monaten, quartal|quartalen,"
    " jahr|jahre|jahren",
    counts="einem|einer|ein|eine, zwei, drei, vier, funf|fuenf, sechs, sieben, acht, neun, zehn, elf, zwolf|zwoelf",
    few="ein paar|einigen|wenigen",
    near={"vorgestern": -2, "gestern": -1, "heute": 0, "ubermorgen": 2},
    ago=("vor ", ""),
    last="(?:letzte|vergangene|vorige)[mnrs]?",
    this="diese[mnrs]?",
    next="(?:nachste|naechste|kommende)[mnrs]?",
    latest="im|in|am|seit|seit dem|ab|bis|bis zum|vor|vor dem|nach|nach dem|von|vom|wahrend",
)
_SPANISH = Language(
    months="enero, febrero, marzo, abril, mayo, junio, julio, agosto, septiembre|setiembre,"
    " octubre, noviembre, diciembre",
    weekdays="lunes, martes, miercoles, jueves, viernes, sabado, domingo",
    seasons="primavera, verano, otono, invierno",
    units="dia|dias, semana|semanas, fin de semana|fines de semana, mes|meses, trimestre|trimestres, ano|anos",
    counts="un|una, dos|un par de, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, once, doce",
    few="unos|unas|algunos|algunas|unos pocos|unas pocas",
    near={"anteayer": -2, "antes de ayer": -2, "ayer": -1, "anoche": -1, "hoy": 0},
    ago=("hace ", ""),
    last="pasad[ao]|ultim[ao]",
    this="est[ae]",
    next="proxim[ao]",
    latest="(?:en|desde|hasta|durante|antes de|despues de)(?: el| la)?|el|la",
    over="pasad[ao]",
    coming="que viene|proxim[ao]",
)
LANGUAGES = (_ENGLISH, _GERMAN, _SPANISH)
SHORT_MONTHS = "jan, feb, mar, apr, may, jun, jul, aug, sep|sept, oct, nov, dec"
"""English ones: a table as in `Language`. They count only beside a day or a year."""
