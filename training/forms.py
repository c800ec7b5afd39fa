"""The forms of the labelled data, a class for each kind of file. What the labels mean: `training/data/README.md`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
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
FAMILY_PAIRS = 10
NEAR_PROMPTS = 2
TRIGGERS = range(2, 9)
"""How many situations a memory may have."""
CODING_EVENTS = 20
Topic = Literal[
    "rule",
    "identity",
    "people",
    "relations",
    "children",
    "health",
    "diet",
    "money",
    "faith",
    "work",
    "project",
    "tools",
    "plans",
    "home",
    "life",
]


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
    """A sentence of a message: is it worth keeping, whose is it, what is it for? The rest is of kept ones."""

    text: Text
    keep: bool
    author: Literal["user", "other"] | None = None
    intent: Literal["tells", "asks", "orders", "corrects", "withdraws", "remember", "forget", "chats"] | None = None
    category: Category | None = None
    lasting: bool | None = None
    ends: str | None = None
    slot: tuple[str, str, str] | None = None
    context: Context | None = None

    @model_validator(mode="after")
    def _fits(self) -> Sentence:
        if self.keep and (self.category is None or self.lasting is None):
            raise ValueError(f"{self.text[:60]!r} is kept without a category or without a word on how long")
        if self.keep and self.author == "other":
            raise ValueError(f"{self.text[:60]!r} is kept, though it is another's")
        if self.lasting is False and not self.ends:
            raise ValueError(f"{self.text[:60]!r} does not last, and nothing says what ends it")
        return self


class Message(_Form):
    """What a user says, after at most two turns."""

    id: str
    style: Literal[
        "chat", "work", "dictation", "typos", "log", "task", "group", "terse",
        "role_play", "translation", "mail", "form", "answer", "sarcasm", "hypothetical",
    ]  # fmt: skip
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
                    if kept.text not in turn.user or any(words in kept.text for words in turn.never):
                        raise ValueError(
                            f"{turn.id}: {kept.id} is not the user's words, or some that nothing kept may hold"
                        )
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


class Triggers(_Form):
    """Of each memory of a store the situations, as its user might type them, in which it matters."""

    triggers: str
    lang: str = "en"
    store: str
    items: dict[str, tuple[Text, ...]]

    @model_validator(mode="after")
    def _fits(self) -> Triggers:
        for name, situations in self.items.items():
            if len(situations) not in TRIGGERS:
                raise ValueError(f"{name} has {len(situations)} triggers, not {TRIGGERS.start} to {TRIGGERS.stop - 1}")
            _once(map(str.casefold, situations), name)
        return self

    def texts(self) -> Iterator[str]:
        """Yield what was written."""
        for situations in self.items.values():
            yield from situations


class Topics(_Form):
    """Of each memory of a store its topic."""

    topics: str
    lang: str = "en"
    store: str
    items: dict[str, Topic]

    def texts(self) -> Iterator[str]:
        """Yield nothing: the memories are written in the store."""
        yield from ()


class Link(_Form):
    """A memory, a prompt that it changes the reply to, and prompts of the same field that it does not."""

    id: str
    family: Text
    memory: Text
    prompt: Text
    near: tuple[Text, ...] = Field(min_length=NEAR_PROMPTS, max_length=NEAR_PROMPTS)


class Families(_Form):
    """Families of implicit need: ten pairs of each kind of link between a memory and a prompt."""

    families: str
    lang: str = "en"
    items: tuple[Link, ...] = Field(min_length=FAMILY_PAIRS)

    @model_validator(mode="after")
    def _fits(self) -> Families:
        _once((item.id for item in self.items), self.families)
        for family, pairs in Counter(item.family for item in self.items).items():
            if pairs != FAMILY_PAIRS:
                raise ValueError(f"{family!r} has {pairs} pairs, not {FAMILY_PAIRS}")
        return self

    def texts(self) -> Iterator[str]:
        """Yield what was written."""
        for item in self.items:
            yield from (item.memory, item.prompt, *item.near)


class Event(_Form):
    """What the user said, or the agent, or what a tool was given and put out; a command has the code of its exit."""

    user: Text | None = None
    assistant: Text | None = None
    tool: str | None = None
    input: dict[str, str] | None = None
    output: str | None = None
    exit: int | None = None

    @model_validator(mode="after")
    def _fits(self) -> Event:
        if sum(each is not None for each in (self.user, self.assistant, self.tool)) != 1:
            raise ValueError("an event is the user's, the agent's or a tool's")
        used = self.tool is not None
        if (self.input is not None) != used or (self.output is not None) != used:
            raise ValueError("a tool has an input and an output, and nothing else has")
        if (self.exit is not None) != (self.tool == "Bash"):
            raise ValueError("a command has an exit code, and nothing else has")
        return self

    def said(self) -> str:
        """Return all that stands in it."""
        return "\n".join(filter(None, (self.user, self.assistant, *(self.input or {}).values(), self.output)))


class Where(_Form):
    """How a coding session ended: its branch, the files that changed, what failed once, what passes, what is open."""

    branch: str
    files: tuple[str, ...]
    failed: tuple[str, ...]
    passed: tuple[str, ...]
    open: str


class Again(_Form):
    """The same trouble met anew; a good reminder holds one of `fix`, and `why` is what it says."""

    prompt: Text
    fix: tuple[Text, ...] = Field(min_length=1)
    why: Text


class Coding(_Form):
    """A session of an agent in a terminal, and what is typed in the next one."""

    coding: str
    lang: str = "en"
    project: str
    branch: str
    who: Text
    events: tuple[Event, ...] = Field(min_length=CODING_EVENTS)
    where: Where
    never: tuple[Text, ...]
    again: tuple[Again, ...] = Field(min_length=1)
    other: tuple[Text, ...]

    @model_validator(mode="after")
    def _fits(self) -> Coding:
        exits: dict[str, list[int]] = {}
        for event in self.events:
            if event.exit is not None and event.input is not None:
                exits.setdefault(event.input.get("command", ""), []).append(event.exit)
        _lacking(self.where.failed, {command for command, codes in exits.items() if any(codes)}, "failed")
        _lacking(self.where.passed, {command for command, codes in exits.items() if codes[-1] == 0}, "passed")
        said = "\n".join(event.said() for event in self.events)
        _lacking(self.never, {each for each in self.never if each in said}, "never")
        for again in self.again:
            if not any(each.casefold() in said.casefold() for each in again.fix):
                raise ValueError(f"{again.prompt[:60]!r} was fixed by nothing in the session")
        return self

    def texts(self) -> Iterator[str]:
        """Yield what was written as speech; outputs of tools repeat each other, as they do in life."""
        for event in self.events:
            yield event.user or event.assistant or ""
        for again in self.again:
            yield from (again.prompt, again.why)
        yield from self.other


File = Store | Life | Conversation | Messages | Pairs | Day | Triggers | Topics | Families | Coding
FORMS: dict[str, type[File]] = {
    "stores": Store, "lives": Life, "conversations": Conversation, "messages": Messages, "pairs": Pairs, "days": Day,
    "triggers": Triggers, "topics": Topics, "families": Families, "coding": Coding,
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
    _once(ids, "ids")
    for prompt in prompts:
        _lacking(prompt.needs, set(ids), prompt.text)


def _once(names: Iterable[str], where: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{name[:60]!r} stands twice in {where}")


def _lacking(needs: tuple[str, ...], known: set[str], where: str) -> None:
    for need in needs:
        if need not in known:
            raise ValueError(f"{where[:60]!r} names {need}, which is not there")
