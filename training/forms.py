"""The forms of the labelled data, a class for each kind of file. What the labels mean: `training/data/README.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Category = Literal["preference", "fact", "decision", "entity", "other"]
NEEDING = frozenset({"direct", "paraphrase", "implicit", "multi", "list", "opening"})
"""Kinds of prompts that some memory or turn helps."""
IDLE = frozenset({"other_attribute", "other_sense", "general", "chat"})
"""Kinds of prompts that none helps; a task may need some or none."""
Kind = Literal[
    "direct",
    "paraphrase",
    "implicit",
    "multi",
    "list",
    "other_attribute",
    "other_sense",
    "general",
    "chat",
    "task",
    "opening",
]
CONVERSATION_TURNS = 120
CONVERSATION_PROMPTS = 40
DAY_TURNS = 40
DAY_SESSIONS = 3


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompt(_Form):
    """What is typed later, with the ids of what helps."""

    text: Text
    kind: Kind
    needs: tuple[str, ...]

    @model_validator(mode="after")
    def _fits(self) -> Prompt:
        if (self.kind in NEEDING and not self.needs) or (self.kind in IDLE and self.needs):
            raise ValueError(f"{self.text[:60]!r} is {self.kind} and needs {list(self.needs)}")
        if len(set(self.needs)) < len(self.needs):
            raise ValueError(f"{self.text[:60]!r} needs something twice")
        return self


class Known(_Form):
    """One memory of a store."""

    id: str
    text: Text


class _Memories(_Form):
    store: str
    lang: str = "en"
    who: Text
    memories: tuple[Known, ...]
    prompts: tuple[Prompt, ...]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _refer(self.prompts, [memory.id for memory in self.memories])
        return self

    def texts(self) -> Iterator[str]:
        """Yield what was written."""
        yield from (memory.text for memory in self.memories)
        yield from (prompt.text for prompt in self.prompts)


class Store(_Memories):
    """The memories of one person or team, all true at once, and later prompts."""


class Life(_Memories):
    """The memories of one person's life, and later prompts: sessions of eight, in the order of their typing."""


class Said(_Form):
    """A turn of a conversation. `name`: who speaks, in a group; `date`: where a new day begins."""

    id: str
    role: Literal["user", "assistant"]
    text: Text
    name: str | None = None
    date: str | None = None


class Conversation(_Form):
    """A past conversation, and later prompts with the turns that help."""

    conversation: str
    lang: str = "en"
    who: Text
    turns: tuple[Said, ...] = Field(min_length=CONVERSATION_TURNS)
    prompts: tuple[Prompt, ...] = Field(min_length=CONVERSATION_PROMPTS)

    @model_validator(mode="after")
    def _fits(self) -> Conversation:
        _refer(self.prompts, [turn.id for turn in self.turns])
        return self

    def texts(self) -> Iterator[str]:
        """Yield what was written."""
        yield from (turn.text for turn in self.turns)
        yield from (prompt.text for prompt in self.prompts)


class Heard(_Form):
    """A turn before a message."""

    role: Literal["user", "assistant"]
    text: Text


class Context(_Form):
    """What a sentence needs of the turns before: which word means what, and who named it."""

    word: str
    means: str
    source: Literal["user", "assistant"] = Field(alias="from")


class Sentence(_Form):
    """A sentence of a message, and whether it is worth keeping; what follows `keep` belongs to kept ones."""

    text: Text
    keep: bool
    category: Category | None = None
    lasting: bool | None = None
    ends: str | None = None
    slot: tuple[str, str, str] | None = None
    context: Context | None = None

    @model_validator(mode="after")
    def _fits(self) -> Sentence:
        if self.keep and (self.category is None or self.lasting is None):
            raise ValueError(f"{self.text[:60]!r} is kept without a category or without a word on how long")
        if self.lasting is False and not self.ends:
            raise ValueError(f"{self.text[:60]!r} does not last, and nothing says what ends it")
        return self


class Message(_Form):
    """What a user says, after at most two turns."""

    id: str
    style: Literal["chat", "work", "dictation", "typos", "log", "task", "group", "terse"]
    before: tuple[Heard, ...] = Field(max_length=2)
    text: Text
    sentences: tuple[Sentence, ...] = Field(min_length=1)
    lang: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Message:
        rest = self.text
        for sentence in self.sentences:
            before, found, rest = rest.partition(sentence.text)
            if not found:
                raise ValueError(f"{self.id}: {sentence.text[:60]!r} does not follow in {before[:60]!r}")
        return self


class Messages(_Form):
    """Messages of one writer."""

    messages: str
    lang: str = "en"
    items: tuple[Message, ...]

    def texts(self) -> Iterator[str]:
        """Yield what was written."""
        yield from (item.text for item in self.items)


class Pair(_Form):
    """Memories that are known, and what their user says later."""

    id: str
    known: tuple[Text, ...] = Field(min_length=1, max_length=5)
    new: Text
    relation: Literal["unrelated", "same", "replaces", "withdraws", "adds", "contradicts"]
    target: int | None
    part: str | None = None
    lang: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Pair:
        if (self.target is None) != (self.relation == "unrelated"):
            raise ValueError(f"{self.id}: {self.relation} with target {self.target}")
        if self.target is not None and not 0 <= self.target < len(self.known):
            raise ValueError(f"{self.id}: target {self.target} of {len(self.known)} known ones")
        if self.part is not None and (self.target is None or self.part not in self.known[self.target]):
            raise ValueError(f"{self.id}: {self.part!r} is no part of its target")
        return self


class Pairs(_Form):
    """Pairs of one writer."""

    pairs: str
    lang: str = "en"
    items: tuple[Pair, ...]

    def texts(self) -> Iterator[str]:
        """Yield what was written, each known memory once."""
        yield from dict.fromkeys(text for item in self.items for text in item.known)
        yield from (item.new for item in self.items)


class Kept(_Form):
    """What is to be kept of a turn, in its words; `replaces` and `withdraws` name what was kept earlier."""

    id: str
    text: Text
    category: Category
    lasting: bool
    replaces: tuple[str, ...] = ()
    withdraws: tuple[str, ...] = ()


class Turn(_Form):
    """A turn of a day: what is kept of it, words that nothing kept may hold, and what it needs of earlier sessions."""

    id: str
    user: Text
    assistant: Text
    keep: tuple[Kept, ...] = ()
    never: tuple[Text, ...] = ()
    needs: tuple[str, ...] = ()
    speaker: str | None = None
    owner: bool = True


class Session(_Form):
    """A session of a day script."""

    session: str
    date: str
    turns: tuple[Turn, ...]


class Day(_Form):
    """Sessions with an agent, with labels that were written with the turns."""

    day: str
    lang: str = "en"
    style: str
    who: Text
    sessions: tuple[Session, ...] = Field(min_length=DAY_SESSIONS)

    @model_validator(mode="after")
    def _fits(self) -> Day:
        if sum(len(session.turns) for session in self.sessions) < DAY_TURNS:
            raise ValueError(f"a day has at least {DAY_TURNS} turns")
        earlier: set[str] = set()
        for session in self.sessions:
            here: set[str] = set()
            for turn in session.turns:
                _lacking(turn.needs, earlier, turn.id)
                for kept in turn.keep:
                    _lacking((*kept.replaces, *kept.withdraws), earlier | here, turn.id)
                    here.add(kept.id)
            earlier |= here
        return self

    def texts(self) -> Iterator[str]:
        """Yield what was written."""
        for session in self.sessions:
            for turn in session.turns:
                yield turn.user
                yield turn.assistant


File = Store | Life | Conversation | Messages | Pairs | Day
FORMS: dict[str, type[File]] = {
    "stores": Store, "lives": Life, "conversations": Conversation, "messages": Messages, "pairs": Pairs, "days": Day
}  # fmt: skip
"""The form of a file by the folder that it lies in."""


def parsed(kind: str, content: Any) -> File:
    """Return the content of a file in its form.

    Args:
        kind: the folder it lies in, one of `FORMS`.
        content: as JSON gives it.

    Raises:
        pydantic.ValidationError: it does not have that form.
    """
    return FORMS[kind].model_validate(content)


def _refer(prompts: tuple[Prompt, ...], ids: list[str]) -> None:
    if len(set(ids)) < len(ids):
        raise ValueError("an id stands twice")
    for prompt in prompts:
        _lacking(prompt.needs, set(ids), prompt.text)


def _lacking(needs: tuple[str, ...], known: set[str], where: str) -> None:
    for need in needs:
        if need not in known:
            raise ValueError(f"{where[:60]!r} names {need}, which is not there")
