"""All settings, from four sources, in one model."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from perdure.engine.paths import config_file
from perdure.engine.setting_sources import PREFIX, from_environment, from_file, refuse_secrets, snake
from perdure.errors import SettingsError
from perdure.hooks.types import HEADLESS, Placement
from perdure.index.feeding import CROSSOVER
from perdure.regex import lazy
from perdure.text.timestamps import zone_of

_Adjustment = Literal["salience", "confidence", "importance_recency", "long_term", "freshness"]
_CodingHost = Literal["claude-code", "codex", "cursor", "gemini", "vscode"]
CODING = frozenset(get_args(_CodingHost))
"""Hosts that are for work: what is private is told to none of them by itself."""
_Share = Annotated[float, Field(ge=0, le=1)]
_Hours = Annotated[float, Field(ge=0)]
_Days = Annotated[float, Field(ge=0)]
_Facts = Annotated[int, Field(ge=1, le=1_000_000)]
_BUCKET = lazy(r"(?:s3|gs|az)://[^/@?#\s]+(?:/[^@?#\s]*)?")


def _none_or_near(cosine: float) -> float:
    if 0 < cosine < 0.5:
        raise ValueError("must be 0, or a cosine from 0.5 to 1")
    return cosine


def _no_switch(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number of links, 0 for none")
    return value


def _nothing_or_a_block(tokens: int) -> int:
    if 0 < tokens < 130:
        raise ValueError("must be 0, or at least 130: the text around the memories takes most of that")
    return tokens


def _zone(name: str) -> str:
    if name and zone_of(name) is None:
        raise ValueError("must be the IANA name of a time zone, such as Europe/Lisbon")
    return name


def _bucket(url: str | None) -> str | None:
    if url is not None and not _BUCKET.fullmatch(url):
        raise ValueError("must be s3://BUCKET/FOLDER, gs://... or az://..., without a key or a signature")
    return url


def _texts(options: Any) -> Any:
    # In TOML and JSON a switch is a boolean.
    if not isinstance(options, Mapping):
        return options
    return {name: json.dumps(held) if isinstance(held, bool | int) else held for name, held in options.items()}


class Table(BaseModel):
    """A group of settings; one that is left out keeps its default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Return what the docstring below each field says, read from the source: only documents need it."""
        [table] = [each for each in ast.parse(inspect.getsource(cls)).body if isinstance(each, ast.ClassDef)]
        found = {}
        for pair in pairwise(table.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
        return found


class _Index(Table):
    """How new memories are indexed."""

    vectors: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Number of new vectors that starts the index worker."""
    seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """Start it no later than this many seconds after the first new vector."""
    crossover: Annotated[int, Field(ge=1_000)] = CROSSOVER
    """Number of memories at which search switches to LanceDB."""
    lexical: Literal["fts5", "lance"] = "fts5"
    """Keyword index to search: SQLite's, or LanceDB's wherever LanceDB is searched for vectors."""


class _Directives(Table):
    """Memories to recall regardless of what a search finds."""

    entities: tuple[str, ...] = ()
    """Recall an entity's memories when a prompt names it."""
    keywords: tuple[str, ...] = ()
    """Recall the memories that contain a keyword when a prompt contains it."""
    tasks: dict[str, tuple[str, ...]] = {}
    """Words by kind of task, such as `{"deploy": ["release"]}`: a prompt with the task or one of its words
    recalls the memories that contain any of them."""
    session_tags: tuple[str, ...] = ()
    """Recall memories with these tags at the first prompt in a session that triggers a search."""


class _CaptureLimits(Table):
    """Limits on capture."""

    min_chars: Annotated[int, Field(ge=1, le=1_000)] = 10
    """Minimum length of a message, in characters; shorter ones are ignored."""
    max_chars: Annotated[int, Field(ge=100, le=16_000)] = 5_000
    """Maximum length of a message, in characters; longer ones are truncated."""
    turn: _Facts = 30
    """Maximum memories from one message; the rest wait for `perdure review`."""
    session: _Facts = 500
    """The same, per conversation."""
    day: _Facts = 2_000
    """The same, per day."""


class _Compare(Table):
    """How a new memory is compared with existing ones."""

    exact: bool = True
    """Treat identical text as a duplicate."""
    normalised: bool = True
    """Treat text that differs only in case, whitespace and the like as a duplicate."""
    vector: Annotated[_Share, AfterValidator(_none_or_near)] = 0.95
    """Minimum cosine for a text to be a duplicate by meaning; 0: off."""
    classify: bool = True
    """Detect which older memory a new one supersedes."""
    auto_link: Annotated[int, Field(ge=0, le=50), BeforeValidator(_no_switch)] = 0
    """Number of similar memories that a new memory is linked to; 0: none."""


class _Jobs(Table):
    """Hours between runs of each job, by its name."""

    prune: _Hours = 1.0
    canary: _Hours = 24.0
    files: _Hours = 0.25
    classify: _Hours = 24.0
    backup: _Hours = 24.0
    export: _Hours = 24.0
    optimise: _Hours = 24.0
    calibrate: _Hours = 24.0
    reconcile: _Hours = 24.0
    tidy: _Hours = 168.0


class _Keep(Table):
    """How long receipts and conversations are kept, and how many copies."""

    expired_days: _Days = 365.0
    """Days after which an expired memory is removed."""
    receipt_days: _Days = 30.0
    """Days that receipts, the record of what a turn considered, are kept."""
    conversation_days: _Days | None = None
    """Days that recorded conversations are kept after their last message; unset: permanently."""
    copies: Annotated[int, Field(ge=1, le=1_000)] = 7
    """Number of daily backups, and of daily exports, to keep."""


class _Search(Table):
    """How files and conversations are chunked and searched."""

    chunk_tokens: Annotated[int, Field(ge=20, le=4_000)] = 400
    """Tokens per chunk of a Markdown file."""
    chunk_overlap: Annotated[int, Field(ge=0, le=2_000)] = 80
    """Tokens of overlap between consecutive chunks."""
    max_results: Annotated[int, Field(ge=1, le=100)] = 6
    """Maximum number of results."""
    min_score: _Share = 0.35
    """Minimum score of a result."""
    candidates: Annotated[int, Field(ge=1, le=50)] = 4
    """Candidates that each retriever returns per requested result."""
    vector_weight: _Share = 0.5
    """Weight of semantic search; keyword search gets the rest."""
    half_life_days: Annotated[float, Field(gt=0)] = 30.0
    """Days after which a dated file's score is halved."""
    mmr_lambda: _Share = 0.7
    """Balance of score and diversity in reranking (MMR); 1: score only."""
    citations: Literal["auto", "on", "off"] = "auto"
    """Cite the source of results; auto: not in groups."""


class _Flush(Table):
    """When a host is asked to have its agent save what a compaction is about to drop."""

    enabled: bool = True
    """Ask the agent to save its notes before a compaction."""
    reserve_tokens: Annotated[int, Field(ge=0)] = 20_000
    """Tokens that the host reserves."""
    soft_tokens: Annotated[int, Field(ge=0)] = 4_000
    """How many tokens before the reserve a flush is due."""
    prompt: str | None = None
    """Replacement for the flush prompt."""
    system_prompt: str | None = None
    """Replacement for its system prompt."""


class _Llm(Table):
    """How the language model is used."""

    nano: str | None = None
    """Model for small tasks, such as rewording queries; unset: `llm_model`."""
    daily_tokens: Annotated[int, Field(ge=0)] = 100_000
    """Token budget per day (UTC), across all processes; 0: no requests are made."""
    timeout: Annotated[float, Field(gt=0, le=600)] = 15.0
    """Timeout of a request, in seconds."""
    expansion: Literal["search", "turn", "off"] = "search"
    """When the language model also rewords queries: in explicit searches (`search`), also in every turn, within its
    deadline (`turn`), or never (`off`)."""


class Settings(Table):
    """What a user can set. Every field has a working default."""

    model_config = ConfigDict(protected_namespaces=())

    auto_recall: bool = True
    """Recall memories before each turn."""
    auto_capture: bool = True
    """Store what is worth remembering after each turn."""
    timezone: Annotated[str, AfterValidator(_zone)] = ""
    """Your time zone, such as `Europe/Lisbon`, used to resolve "tomorrow" if neither the message nor the host gives
    one; empty: that of this machine."""
    embedder: str = "auto"
    """Name of an embedder; "auto", "local", "builtin": the local model; "none": keyword search only. Others:
    `docs/providers.md`."""
    embedder_model: str | None = None
    """Model of that embedder: a name or a folder; with `onnx`, one from `perdure model list`."""
    embedder_endpoint: str | None = None
    """URL of its server, if not the default."""
    embedder_key_env: str | None = None
    """Name of the environment variable with its API key, if not the default."""
    embedder_dims: Annotated[int | None, Field(ge=8, le=16_384)] = None
    """Dimensions of its vectors, if not the default."""
    embedder_fallbacks: tuple[str, ...] = ()
    """Fallback embedders, as `name` or `name=address`: for "auto" where the local model is missing, otherwise for a
    server that fails, with the same model."""
    model_path: Path | None = None
    """The local model's ONNX file, or the folder with its files, if not the default; its sha256 is checked."""
    model_switch: Literal["ask", "auto"] = "ask"
    """When another model is set: ask before switching, or switch automatically."""
    reranker: str | None = None
    """Name of a reranker from an extension."""
    store_url: Annotated[str | None, Field(repr=False)] = None
    """URL of a PostgreSQL database for the memories, `postgresql://...`; see `docs/postgresql.md`."""
    store_direct_url: Annotated[str | None, Field(repr=False)] = None
    """URL of that database that bypasses a pooler, used for schema migrations."""
    store_tenant: str = "default"
    """Tenant in that database; tenants see only their own memories."""
    ack: Literal["local", "database"] = "local"
    """Where a turn is stored once acknowledged: on this machine's disk, or in that database too."""
    vector_index: Literal["auto", "exact", "lance"] = "auto"
    """Vector index to search; `auto` chooses by the size of the store."""
    lance_url: Annotated[str | None, AfterValidator(_bucket), Field(repr=False)] = None
    """Object storage that holds the LanceDB table, as `s3://BUCKET/FOLDER`; unset: the data folder. See
    `docs/object-storage.md`."""
    lance_storage_options: Annotated[dict[str, str], BeforeValidator(_texts), Field(repr=False)] = {}
    """Connection options of that storage, by LanceDB's names; keys and passwords only in the environment."""
    index: _Index = _Index()
    """How new memories are indexed."""
    recall_limit: Annotated[int, Field(ge=1, le=100)] = 10
    """Maximum memories in a block."""
    recall_max_tokens: Annotated[int, Field(ge=50, le=100_000)] = 800
    """Maximum tokens per block."""
    recall_threshold: _Share | Literal["strict", "balanced", "generous"] = "balanced"
    """Minimum probability of relevance for a memory to be recalled: 0 to 1, or a name."""
    min_cosine: Annotated[float | None, Field(ge=-1, le=1)] = None
    """Minimum cosine, in place of the threshold."""
    recall_format: Literal["full", "short", "minimal", "progressive"] = "full"
    """Format of the block: `full`, `short`, `minimal`, or `progressive`, an index from which the agent opens entries by
    number."""
    recall_placement: Placement = Placement.HEAD
    """Position of the block: `head`, before the newest message, `tail`, after it, or `system`."""
    recall_deadline_ms: Annotated[int, Field(ge=1, le=60_000)] = 800
    """Timeout in milliseconds; the turn then continues without memories."""
    recall_in_groups: bool = False
    """Recall memories in group chats too, where others read the answer: automatically and through tools."""
    recall_passages: Annotated[int, Field(ge=0, le=50)] = 8
    """Maximum passages of memory files and conversations in a block; 0: none."""
    opening_tokens: Annotated[int, Field(ge=0, le=100_000), AfterValidator(_nothing_or_a_block)] = 800
    """Maximum tokens in a session's opening; 0: no opening."""
    private_hosts: tuple[_CodingHost, ...] = ()
    """Coding hosts whose sessions may begin with private memories too; `perdure connect` asks."""
    recall_profile: Literal["pinned", "standing", "off"] = "pinned"
    """Memories to recall in every turn: `pinned` ones, `standing` preferences and instructions too, or none (`off`)."""
    directives: _Directives = _Directives()
    """Memories to recall regardless of what a search finds."""
    adjust: tuple[_Adjustment, ...] = ("salience", "confidence")
    """Factors that a memory's score is multiplied by. `salience`, which grows with every use: 1 + 0.1 ln(uses + 1);
    a memory shown eight times without being used ranks lower. `confidence`: 0.85 + 0.15 confidence.
    `importance_recency`: (0.7 + 0.3 importance) × (0.8 + 0.2 × the fraction of 90 days remaining). `long_term`: 1.2 for
    permanent memories, 1.1 for stable ones. `freshness`, which falls in the last 7 days of a memory's life: 0.75 + 0.25
    freshness."""
    summary_threshold: Annotated[int, Field(ge=1, le=100_000)] = 300
    """Number of characters above which a block shows a memory's summary."""
    capture_limits: _CaptureLimits = _CaptureLimits()
    """Limits on capture."""
    capture_learnt: bool = True
    """Use trained classifiers as well as rules to decide what to store."""
    capture_assistant: bool = False
    """Also store what the assistant says about the world, pending review; it never replaces what you said."""
    capture_headless: bool = False
    """Store what programs say in headless runs, such as `claude -p` and `codex exec`, as if you had said it."""
    agent_log: bool | Literal["remind"] = True
    """Record what an agent did in a project: files it changed, commands that failed and what fixed them. `remind`:
    before Claude Code or Codex runs a command or edits a file, also tell its model what fixed an earlier failure there,
    once per session. Not the default until its benefit is measured; run `perdure connect` again after a change."""
    capture_patterns: dict[str, str] = {}
    """Custom cues: regular expressions by name; a sentence that matches one is stored."""
    categories: dict[str, str] = {}
    """Custom categories: regular expressions by name."""
    tag_patterns: dict[str, str] = {}
    """Custom tags: regular expressions by tag."""
    compare: _Compare = _Compare()
    """How a new memory is compared with existing ones."""
    timers: bool = True
    """Run maintenance jobs in the background."""
    jobs: _Jobs = _Jobs()
    """Hours between runs of each job, by its name in `docs/jobs.md`; 0: only on request."""
    keep: _Keep = _Keep()
    """How long receipts and conversations are kept, and how many copies."""
    sources: tuple[Literal["memory", "sessions"], ...] = ("memory", "sessions")
    """What to search besides memories: Markdown files (`memory`), conversations (`sessions`); empty: neither."""
    workspace: Path | None = None
    """Folder with MEMORY.md and memory/."""
    extra_paths: tuple[str, ...] = ()
    """Additional folders or .md files to search."""
    record_sessions: bool = True
    """Record conversations of hosts that keep none themselves; not while `auto_capture` is off."""
    watch: bool = True
    """Watch files for changes; they are also checked before each search."""
    search: _Search = _Search()
    """How files and conversations are chunked and searched."""
    flush: _Flush = _Flush()
    """How an agent saves what a compaction is about to drop."""
    llm_endpoint: str | None = None
    """URL of a language model with an OpenAI-compatible chat API; unset: none is ever called."""
    llm_key_env: str | None = None
    """Name of the environment variable with its API key; unset: it needs none."""
    llm_model: str | None = None
    """Name of the model."""
    llm: _Llm = _Llm()
    """Model for small tasks, daily tokens, timeout, and when queries are reworded."""
    librarian: bool = False
    """Have a language model read idle conversations and propose changes, each backed by your own words."""
    disabled_extensions: tuple[str, ...] = ()
    """Extensions not to load."""

    def recalls(self, trigger: str) -> bool:
        """Return whether memories are brought up in a turn that was started so."""
        return self.auto_recall and trigger in ("user", HEADLESS)

    def withholds(self, host: str | None) -> bool:
        """Return whether what is private goes to a host only if it was told there, or pinned."""
        return host in CODING and host not in self.private_hosts

    def heeds(self, trigger: str) -> bool:
        """Return whether what is said in a turn that was started so counts as the user's word."""
        return trigger == "user" or (trigger == HEADLESS and self.capture_headless)

    @classmethod
    def load(
        cls,
        keywords: Mapping[str, Any] | None = None,
        *,
        host_config: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] = os.environ,
        file: Path | None = None,
    ) -> Settings:
        """Read the settings: keywords win over the environment, it over the host's config, it over the file.

        Of a table each key is taken from the first of them that has it. `host_config` is the plugin's part of the
        host's config, where camelCase is understood; `file` is a TOML file, None the user's, if there is one.
        """
        hosted = _from_host(host_config or {})
        refuse_secrets(hosted, "the host's config")
        merged: dict[str, Any] = {}
        for where, source in (
            (f"set in {file or config_file(environ)}", from_file(file, environ)),
            ("set in the host's config", hosted),
            ("set in the environment", _from_environment(environ)),
            ("", dict(keywords or {})),
        ):
            for key, value in source.items():
                check_known(key, where, value)
                weaker = merged.get(key) if table_of(key) and isinstance(value, Mapping) else None
                merged[key] = {**weaker, **value} if isinstance(weaker, Mapping) else value
        return cls._checked(merged)

    @classmethod
    def origins(cls, *, environ: Mapping[str, str] = os.environ, file: Path | None = None) -> dict[str, str]:
        """Return where each setting comes from that is set: its environment variable, the settings file, or both."""
        path = str(file or config_file(environ))
        of_file = dict.fromkeys(from_file(file, environ), path)
        both = {key: f" over {path}" for key in of_file if table_of(key)}
        return of_file | {key: f"{PREFIX}{key.upper()}{both.get(key, '')}" for key in from_environment(environ)}

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """Return the value that a text gives a setting, in the form of environment variables, as JSON could hold it."""
        value = _of_text(name, name, text)
        check_known(name, value=value)
        return cls._checked({name: value}).model_dump(mode="json", exclude_unset=True)[name]

    @classmethod
    def _checked(cls, values: Mapping[str, Any]) -> Settings:
        try:
            return cls(**values)
        except ValidationError as error:
            first, *others = error.errors()
            name = ".".join(map(str, first["loc"][: 2 if table_of(str(first["loc"][0])) else 1]))
            # What is not shown in a representation may be a secret.
            shown = f" = {first['input']!r}" if cls.model_fields[str(first["loc"][0])].repr else ""
            # A value of which several kinds are accepted has an error of each.
            of_it = [first, *(each for each in others if each["input"] is first["input"])]
            told = dict.fromkeys(each["msg"].partition(" or instance of ")[0] for each in of_it)
            why = ", or ".join(each.removeprefix("Value error, ") for each in told)
            raise SettingsError(f"setting {name}{shown}: {why}") from None


_MOVED = {
    "agent_log_reminds": 'agent_log = "remind"', "auto_link": "compare.auto_link", "citations": "search.citations",
    "index_after": "index", "index_crossover": "index.crossover", "lexical_index": "index.lexical",
    "model_hub": "HF_ENDPOINT, in the environment", "model_offline": "HF_HUB_OFFLINE, in the environment",
    "prompt_max_chars": "fixed at 20000", "recall_expansion": "llm.expansion",
    "retention_days": "keep.expired_days",
}  # fmt: skip
"""Where settings are that had another name."""


def table_of(name: str) -> type[Table] | None:
    """Return the table that a setting is; None: it is none."""
    kind = Settings.model_fields[name].annotation if name in Settings.model_fields else None
    return kind if isinstance(kind, type) and issubclass(kind, Table) else None


def check_known(key: str, where: str = "", value: Any = None) -> None:
    """Refuse what is no setting, and what is no key of a table; `where` says in words where it was found."""
    known = list(Settings.model_fields)
    whole, _, part = key.partition(".")
    if part and (table := table_of(whole)) and part in table.model_fields:
        raise SettingsError(f'{key} is a key of the table {whole}; set the table, as {whole}={{"{part}": VALUE}}')
    if key in _MOVED:
        raise SettingsError(f"setting {key!r} is now {_MOVED[key]}{where and f' ({where})'}")
    keys = {each: f"{name}.{each}" for name in known if (table := table_of(name)) for each in table.model_fields}
    if key not in known:
        raise _unknown(key, key, keys | {name: name for name in known}, known, where)
    if (table := table_of(key)) and isinstance(value, Mapping):
        known = list(table.model_fields)
        for each in value:
            if each not in known:
                raise _unknown(f"{key}.{each}", each, {name: f"{key}.{name}" for name in known}, known, where)


def _unknown(name: str, sought: str, known: Mapping[str, str], listed: list[str], where: str) -> SettingsError:
    near = difflib.get_close_matches(sought, known, n=1, cutoff=0.5)
    hint = f"did you mean {known[near[0]]}?" if near else f"known settings: {', '.join(listed)}"
    return SettingsError(f"setting {name!r} is unknown; {hint}{where and f' ({where})'}")


def _from_host(config: Mapping[str, Any]) -> dict[str, Any]:
    found = {snake(key): value for key, value in config.items()}
    for key, value in found.items():
        if table_of(key) and isinstance(value, Mapping):
            found[key] = {snake(each): held for each, held in value.items()}
    return found


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    return {key: _of_text(key, f"{PREFIX}{key.upper()}", text) for key, text in from_environment(environ).items()}


def _of_text(key: str, name: str, text: str) -> Any:
    """Return the value of a setting that is given as text under a name: a list with commas, a table as JSON."""
    kind = Settings.model_fields[key].annotation if key in Settings.model_fields else None
    if get_origin(kind) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if get_origin(kind) is not dict and not table_of(key):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise SettingsError(f"{name} must be a JSON object") from None
