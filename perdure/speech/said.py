"""What a person or the assistant says in a message, read once for all that keep some of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from perdure.hooks.types import Message
from perdure.secrets.redact import redact
from perdure.speech.author import Author, author_of, name_of
from perdure.speech.spans import Spoken, spoken
from perdure.speech.typed import typed
from perdure.text.clean import clean, clip, message_text
from perdure.text.history import MAX_RAW

_IMAGES = ("image", "image_url", "photo")


@dataclass(frozen=True)
class Said:
    """A message of a host's, read."""

    message: Message
    author: Author
    text: str  # what was typed or answered, secrets included; empty where no person and no assistant says anything
    captions: str  # of its images, as " [photo: caption]"

    @cached_property
    def spoken(self) -> Spoken:
        """The text, redacted, and who speaks in which part of it."""
        return spoken(self.text)

    @cached_property
    def photos(self) -> str:
        """The captions, redacted."""
        return redact(self.captions).text

    @cached_property
    def kept(self) -> str:
        """What a record of the conversation holds of it."""
        return clip(f"{self.spoken.text}{self.photos}", MAX_RAW).strip()

    @property
    def name(self) -> str:
        """The name that it gives its speaker, or ""."""
        return name_of(self.message)


def read(record: object, strip: Callable[[str], str] = lambda text: text) -> Said | None:
    """Read a message, or a record that holds one, without our own blocks, which `strip` takes out; None: it is none."""
    author = author_of(record) if isinstance(record, Mapping) else None
    if author is None or not isinstance(record, Mapping):
        return None
    inner = record.get("message")
    message = inner if isinstance(inner, Mapping) else record
    if author not in (Author.USER, Author.ASSISTANT):
        return Said(message, author, "", "")
    whole = strip(message_text(message))
    text = typed(whole) if author is Author.USER else whole
    return Said(message, author, text, captions(message) if text.strip() or not whole.strip() else "")


def captions(message: Message) -> str:
    """Return the captions of a message's images, each as " [photo: caption]"."""
    content = message.get("content")
    told = (
        part.get("caption") or part.get("alt")
        for part in (content if isinstance(content, list | tuple) else ())
        if isinstance(part, Mapping) and part.get("type") in _IMAGES
    )
    said = (" ".join(clean(each).split()) for each in told if isinstance(each, str))
    return "".join(f" [photo: {each}]" for each in said if each)
