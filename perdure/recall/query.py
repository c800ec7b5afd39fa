"""Step one: what is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perdure.recall.query_segmentation import parts
from perdure.regex import lazy
from perdure.text.clean import clean
from perdure.text.normalise import fold, match_terms

MAX_CHARACTERS = 2000
"""Longer prompts are asked by their beginning and their end: in between is mostly pasted material."""

# Words are written without apostrophes, phrases with hyphens.
_GREETINGS = """
hi hello hey yo hiya howdy morning good-morning good-evening good-night goodnight bye goodbye see-you
hallo moin servus guten-morgen guten-tag guten-abend gute-nacht tschuss tschuess bis-spater bis-bald auf-wiedersehen
bonjour salut coucou bonsoir bonne-nuit au-revoir a-bientot a-plus-tard
hola buenos-dias buenas-tardes buenas-noches adios hasta-luego hasta-manana
ola oi bom-dia boa-tarde boa-noite tchau ate-logo ate-amanha
привет здравствуйте здравствуй доброе-утро добрый-день добрый-вечер спокойной-ночи пока до-свидания
おはよう おはようございます こんにちは こんばんは おやすみ おやすみなさい さようなら またね
你好 您好 早 早上好 早安 晚上好 晚安 再见 再見 拜拜
안녕 안녕하세요 안녕히-계세요 안녕히-가세요 잘자 잘-자
how-are-you whats-up what-is-up wie-gehts wie-geht-es-dir ca-va que-tal como-estas tudo-bem como-vai как-дела
"""
_THANKS = """
thanks thank-you thx ty cheers please no-problem np danke danke-schon dankeschon vielen-dank bitte bitte-schon
merci merci-beaucoup de-rien sil-te-plait sil-vous-plait gracias muchas-gracias de-nada por-favor
obrigado obrigada muito-obrigado muito-obrigada valeu спасибо большое-спасибо спасибо-большое спс пожалуйста
не-за-что どうも ありがとう ありがとうございます ありがとうございました お願いします よろしく よろしくお願いします
お疲れ様 お疲れ様です 谢谢 謝謝 谢谢你 謝謝你 谢谢您 多谢 不客气 不客氣 辛苦了
감사합니다 감사해요 고마워 고마워요 고맙습니다 수고하셨습니다
"""
_ANSWERS = """
ok okay k kk yes no yep nope yeah nah sure fine great cool nice perfect awesome wow lol haha done stop go-on
go-ahead continue next please-continue got-it sounds-good makes-sense i-see right never-mind nevermind good hmm
ja nein doch genau klar alles-klar gut sehr-gut prima toll super passt stimmt verstanden weiter mach-weiter schon
oui non daccord bien tres-bien parfait bien-sur cest-bon compris
si vale claro de-acuerdo perfecto genial muy-bien entendido listo bueno sigue
sim nao beleza certo perfeito otimo esta-bem entendi pode-continuar
да нет хорошо ладно ок окей понятно понял поняла ясно отлично супер продолжай дальше
はい いいえ うん 了解 了解です 了解しました わかった わかりました 分かった 分かりました オーケー いいね なるほど
すごい 続けて 好 好的 好吧 嗯 嗯嗯 是 是的 对 對 不 不是 可以 行 没事 沒事
知道了 明白 明白了 继续 繼續 哈哈
네 예 응 아니 아니요 그래 그래요 좋아 좋아요 알겠어 알겠어요 알겠습니다 알았어 오케이 괜찮아 괜찮아요 계속
"""
_FILLERS = """
so well oh ah and there again very much a lot for that it is all you too to everyone
und dir euch sehr et y e mucho muito beaucoup tous todos
"""


def _words(*lists: str) -> frozenset[str]:
    return frozenset(word for words in lists for word in fold(words).split())


_TRIVIAL_WORDS = _words(_GREETINGS, _THANKS, _ANSWERS, "ping heartbeat")
_FILLER_WORDS = _words(_FILLERS)
_LONGEST_PHRASE = 4
_COMMAND = lazy(r"[/!][\w-]+(\s|$)")
_SYSTEM = lazy(r"\[system\b|heartbeat(?:_ok)?\b|read heartbeat\.md\b", re.IGNORECASE)
_WORDS = lazy(r"[\w']+")


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt as the legs ask it.

    Attributes:
        text: what the vector leg embeds.
        terms: what the lexical leg looks for.
        trivial: why nothing should be recalled for it, or None. Of a trivial prompt nothing more is read.
        parts: the prompt in the parts that it is asked in; see `perdure.recall.query_segmentation`.
    """

    text: str
    terms: tuple[str, ...]
    trivial: str | None = None
    parts: tuple[str, ...] = ()


def understand(prompt: str) -> Query:
    """Read a prompt, of any length and with any characters in it."""
    text = clean(_shortened(prompt)).strip()
    if not text:
        return Query("", (), "empty")
    if _COMMAND.match(text):
        return Query(text, (), "command")
    if _SYSTEM.match(text):
        return Query(text, (), "system message")
    terms = match_terms(text)
    if not terms and not any(char.isalnum() for char in text):
        return Query(text, (), "no words")
    words = [word.replace("'", "") for word in _WORDS.findall(fold(text))]
    if _is_small_talk(words):
        return Query(text, terms, "small talk")
    return Query(text, terms, parts=tuple(parts(text)))


def respelled(query: Query, text: str) -> Query:
    """Return a query that asks more words than were written: other names of what is in it."""
    return Query(text, match_terms(text), query.trivial, tuple(parts(text)))


def _is_small_talk(words: Sequence[str]) -> bool:
    if not words or len(words) > 8:
        return not words
    position = 0
    while position < len(words):
        lengths = range(_LONGEST_PHRASE, 0, -1)
        taken = next((n for n in lengths if "-".join(words[position : position + n]) in _TRIVIAL_WORDS), 0)
        if not taken and words[position] not in _FILLER_WORDS:
            return False
        position += max(1, taken)
    return True


def _shortened(prompt: str) -> str:
    if len(prompt) <= MAX_CHARACTERS:
        return prompt
    half = MAX_CHARACTERS // 2
    return f"{prompt[:half]}\n{prompt[-half:]}"
