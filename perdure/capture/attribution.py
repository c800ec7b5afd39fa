"""Whether a statement is about the user, wherever they say it, or about what they are at work on."""

from __future__ import annotations

from perdure.capture.language import language_of
from perdure.capture.slots import USER, Slot
from perdure.regex import lazy
from perdure.text.normalise import fold

_ONESELF = {
    code: lazy(rf"\b(?:{words})\b" if code not in ("hi", "ja", "ko", "zh") else words)
    for code, words in {
        "ar": r"انا|لي|عندي|لدي|معي|عني|اسمي|عمري|احب|اكره|افضل|اعيش|اسكن|اعمل",
        "cs": r"ja|me|mne|mi|mnou|muj|moje|moji|meho|mou|jsem|mam",
        "de": r"ich|mir|mich|mein\w*",
        "en": r"i|i'\w+|me|my|mine|myself",
        "es": r"yo|mi|mis|mio|mia|me|conmigo|soy|tengo|estoy|prefiero|vivo",
        "fr": r"je|j'\w+|moi|me|m'\w+|mon|ma|mes",
        "hi": r"मैं|मुझे|मेरा|मेरी|मेरे|मुझको",
        "ja": r"私|僕|俺|わたし|あたし|ぼく|自分",
        "ko": r"(?:^|[ ,])(?:저|제|나|내|난|전)(?:는|도|가|의|를|에게|한테|랑)?(?= )",
        "pl": r"ja|mnie|mi|moj|moja|moje|mam|jestem|lubie|wole|mieszkam|pracuje",
        "pt": r"eu|meus?|minhas?|mim|comigo|me|sou|tenho|estou|prefiro|moro",
        "ru": r"я|меня|мне|мои|моя|мое|моеи|моего|у меня",
        "sv": r"jag|mig|min|mitt|mina",
        "tr": r"ben|beni|bana|benim|bende|adim|\w+(?:yorum|rim|rum)",
        "zh": r"我(?!们)|咱(?!们)|俺|本人|自己",
    }.items()
}
"""Words by which a speaker means themselves alone, on folded text: "we" may be the team of a project."""


def is_own(text: str, slot: Slot | None) -> bool:
    """Return whether a statement is about the user: it fills a slot of theirs, or names the speaker alone.

    Args:
        text: the statement.
        slot: what it fills, if that is known.
    """
    if slot is not None and slot.entity == USER:
        return True
    oneself = _ONESELF.get(language_of(text))
    return oneself is not None and oneself.search(fold(text)) is not None
