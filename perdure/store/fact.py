"""A fact, and how it lies in its table."""

from __future__ import annotations

import datetime as dt
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any

from perdure.errors import refused
from perdure.hooks.types import Channel
from perdure.ranking.decay import DEFAULT_CLASS
from perdure.store.sql import Connection, Row, run
from perdure.text.clean import clean
from perdure.text.timestamps import ZONE, Dated, Epoch, zone_of

CATEGORIES = ("preference", "fact", "decision", "entity", "other")


@dataclass(frozen=True, slots=True, repr=False)
class Fact(Dated):
    """One memory. All times are epoch seconds; `to_dict` and `created` give them in readable form."""

    text: str
    id: str = ""  # UUID
    why: str | None = None  # the reason given for it
    category: str = "other"  # one of `CATEGORIES`, or a configured one
    importance: float = 0.5  # 0 to 1
    # The slot it fills (entity, key and value), such as ("user", "birthday", "3 May").
    entity: str | None = None
    key: str | None = None
    value: str | None = None
    source: str = "conversation"  # a label for people
    channel: Channel = Channel.UNKNOWN  # where it came from; decides what it may do
    created_at: Epoch = 0.0
    source_date: Epoch | None = None  # when it was said, if not when it was stored
    decay_class: str = DEFAULT_CLASS
    expires_at: Epoch | None = None
    decay_freeze_until: Epoch | None = None
    last_confirmed_at: Epoch | None = None
    confidence: float = 1.0  # 0 to 1, falls with age
    summary: str | None = None  # shown instead of a long text in a recalled block
    tags: tuple[str, ...] = ()  # topic labels
    preserve_tags: bool = False
    normalized_hash: str = ""
    recall_count: int = 0  # how often it reached an agent, in a block or through a tool; does not affect ranking
    access_count: int = 0  # how often it was used; raises its score and extends its life
    injected_count: int = 0  # how often it was added to a prompt
    reinforced_count: int = 0  # how often it was said again
    last_accessed: Epoch | None = None  # when it was last used
    # The period in which it was true.
    valid_from: Epoch | None = None
    valid_until: Epoch | None = None
    # Its place in the chain of versions: when and by what it was replaced, and what it replaces.
    superseded_at: Epoch | None = None
    superseded_by: str | None = None
    supersedes_id: str | None = None
    forgotten_at: Epoch | None = None  # a forgotten fact is in no answer, but can be restored
    tier: str = "warm"  # hot, warm or cold
    # Whom it belongs to.
    scope: str = "global"
    scope_target: str = ""
    embedding_model: str | None = None
    # The session and the turn in which it was said.
    provenance_session: str | None = None
    source_turn: str | None = None
    extraction_method: str | None = None  # how it was extracted
    extraction_confidence: float = 1.0
    pinned: bool = False  # never evicted
    review_state: str = "approved"  # approved, pending or rejected; only approved facts are recalled unasked
    metadata: Mapping[str, Any] = field(default_factory=dict)  # other JSON values
    change_seq: int = 0  # the last journal entry that changed it

    @property
    def created(self) -> dt.datetime:
        """When it was stored, in UTC."""
        return dt.datetime.fromtimestamp(self.created_at, dt.UTC)

    @property
    def effective_date(self) -> float:
        """When it was said, as far as known; decides between equals."""
        return self.source_date if self.source_date is not None else self.created_at

    @property
    def since(self) -> float:
        """When it was stored with these words: it keeps its dates when they are changed."""
        return max(self.created_at, self.valid_from or 0.0)

    @property
    def zone(self) -> dt.tzinfo | None:
        """In which zone its words count days; None: the machine's."""
        return zone_of(self.metadata.get(ZONE))


COLUMNS = tuple(column.name for column in fields(Fact))
SELECT = ", ".join(f"facts.{name}" for name in COLUMNS)
_BOOLEANS = ("preserve_tags", "pinned")


def from_row(row: Row) -> Fact:
    """Read a row of the columns in `SELECT`."""
    # By place: a turn reads a hundred rows.
    values = list(row)
    for place, read in _READ.items():
        values[place] = read(values[place])
    return Fact(*values)


def read_facts(connection: Connection, source: str, values: Sequence[Any] = ()) -> list[Fact]:
    """Return the facts that a statement finds, of which this is what stands behind FROM."""
    return [from_row(row) for row in run(connection, f"SELECT {SELECT} FROM {source}", values)]


def to_row(fact: Fact) -> Row:
    """Return the values of `COLUMNS`."""
    return tuple(to_column(name, getattr(fact, name)) for name in COLUMNS)


def to_column(name: str, value: Any) -> Any:
    """Return a value of a fact as its column holds it."""
    if name == "channel":
        return Channel(value).value
    if name == "tags":
        return join_tags(value)
    if name == "metadata":
        return json.dumps(value, ensure_ascii=False)
    return int(value) if name in _BOOLEANS else value


def folded_slot(text: str | None) -> str | None:
    """Return an entity or key as it is compared: in any case and any normal form the same."""
    if text is not None and not isinstance(text, str):
        raise refused(text, "a text", "entity or key")
    return None if text is None else unicodedata.normalize("NFC", clean(text).casefold())


def join_tags(tags: Iterable[str]) -> str:
    """Write tags as the comma list they are stored as: trimmed, lower case, each once, in order."""
    plain = (clean(tag).replace(",", " ").strip().lower() for tag in tags)
    return ",".join(dict.fromkeys(tag for tag in plain if tag))


def tags_of(value: object) -> tuple[str, ...]:
    """Read tags as a caller gives them: a list of texts; or a text that is JSON, a comma list, or one tag."""
    given = value
    if isinstance(value, str):
        given = None
        with suppress(ValueError, RecursionError):
            given = json.loads(value)
        given = given if isinstance(given, list) else [part.strip(" '\"") for part in value.strip(" []").split(",")]
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        told = [str(each) if type(each) is int else each for each in given if each not in (None, "")]
        if all(isinstance(each, str) for each in told):
            return tuple(map(clean, told))
    raise refused(value, "a list of strings, such as ['drinks', 'summer']")


def split_tags(text: str) -> tuple[str, ...]:
    """Read a comma list of tags."""
    return tuple(tag for tag in text.split(",") if tag)


def _metadata(text: str) -> Any:
    # Nearly all have none, and a turn reads a hundred.
    return {} if text == "{}" else json.loads(text)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "channel": Channel, "tags": split_tags, "metadata": _metadata, **dict.fromkeys(_BOOLEANS, bool)
}  # fmt: skip
_READ = {COLUMNS.index(name): read for name, read in _READERS.items()}
"""How each column is read that holds something else than a fact does, by its place."""


def live_sql(
    now: float, *, as_of: float | None = None, include_superseded: bool = False
) -> tuple[str, tuple[float, ...]]:
    """Return the SQL condition for facts that may be in an answer, and its values.

    With `as_of` it is about what was true at that time, instead of now.
    """
    if as_of is not None:
        condition = (
            "facts.forgotten_at IS NULL AND coalesce(facts.valid_from, facts.created_at) <= ?"
            " AND (facts.valid_until IS NULL OR facts.valid_until > ?)"
        )
        return condition, (as_of, as_of)
    condition = "facts.forgotten_at IS NULL AND (facts.expires_at IS NULL OR facts.expires_at > ?)"
    if not include_superseded:
        # The plus keeps SQLite from walking all facts that are current by the index of this column.
        condition += " AND +facts.superseded_at IS NULL"
    return condition, (now,)


_ONE_VALUE = """
    name nickname birthday age email phone address location city country hometown employer job title role team manager
    boss timezone pronouns nationality salary deadline username website anniversary
"""
_SINGLE = frozenset(_ONE_VALUE.split())
_SINGLE_PREFIXES = ("favorite ", "favourite ", "preferred ", "default ", "main ", "current ")


def vector_text(text: str, entity: str | None, key: str | None) -> str:
    """Return what is embedded for a fact.

    A slot that the words only imply is named in front: "I live in Lisbon" is near no question about a location,
    "My location: I live in Lisbon" is.
    """
    if entity is None or key is None:
        return text
    spoken = key.replace("_", " ")
    if spoken.casefold() in text.casefold():
        return text
    slot = f"My {spoken}" if entity.casefold() == "user" else f"{entity} {spoken}"
    return f"{slot}: {text}"


def is_single_valued(key: str) -> bool:
    """Return whether a new value in this slot means that the old one is no longer true.

    "My birthday is ..." can have one answer only; "my brother is ..." can be said of him many times.
    """
    key = key.casefold()
    return key in _SINGLE or key.startswith(_SINGLE_PREFIXES) or key.rsplit(" ", 1)[-1] in _SINGLE


_MORE = "…"


@dataclass(frozen=True, slots=True)
class Summaries:
    """Which texts have a summary, and how long one is that is cut out of its text."""

    threshold: int = 300  # a text of more characters is long
    max_chars: int = 80  # characters of a long text that stand for it

    def of(self, text: str) -> str | None:
        """Return the beginning of a long text; None for a text that stands for itself."""
        if len(text) <= max(self.threshold, self.max_chars):
            return None
        return text[: self.max_chars].rstrip() + _MORE

    def shown(self, fact: Fact) -> str:
        """Return the text of a fact, or what stands for it if it is long."""
        if fact.summary and not was_cut(fact) and len(fact.text) > self.threshold:
            return fact.summary
        return self.of(fact.text) or fact.text


USUAL = Summaries()


def was_cut(fact: Fact) -> bool:
    """Return whether a fact's summary is the beginning of its text, of whatever length was set at that time."""
    cut = fact.summary or ""
    return cut.endswith(_MORE) and fact.text.startswith(cut.removesuffix(_MORE))
