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
from typing import Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from perdure.engine.paths import config_file
from perdure.engine.setting_sources import PREFIX, from_environment, from_file, refuse_password, snake
from perdure.errors import SettingsError
from perdure.hooks.types import HEADLESS, Placement
from perdure.index.feeding import CROSSOVER
from perdure.text.timestamps import zone_of

_Adjustment = Literal["salience", "confidence", "importance_recency", "long_term", "freshness"]
_Share = Annotated[float, Field(ge=0, le=1)]
_Hours = Annotated[float, Field(ge=0)]
_Days = Annotated[float, Field(ge=0)]
_Facts = Annotated[int, Field(ge=1, le=1_000_000)]


def _none_or_near(cosine: float) -> float:
    if 0 < cosine < 0.5:
        raise ValueError("takes 0, or a cosine from 0.5 to 1")
    return cosine


def _no_switch(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("takes a number of links, 0 for none")
    return value


def _nothing_or_a_block(tokens: int) -> int:
    if 0 < tokens < 100:
        raise ValueError("takes 0, or at least 100: the words around the memories take half of that")
    return tokens


def _zone(name: str) -> str:
    if name and zone_of(name) is None:
        raise ValueError("takes the IANA name of a time zone, as Europe/Lisbon")
    return name


class Table(BaseModel):
    """Settings that belong together; one that is left out keeps its default."""

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


class _IndexAfter(Table):
    """What starts the index worker."""

    vectors: Annotated[int, Field(ge=1, le=10_000)] = 50
    """So many new vectors."""
    seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """So long a wait of the first of them."""


class _Directives(Table):
    """What brings memories up whatever a search finds."""

    entities: tuple[str, ...] = ()
    """Each brings up its memories when a prompt names it."""
    keywords: tuple[str, ...] = ()
    """Each brings up the memories that hold it when a prompt does."""
    tasks: dict[str, tuple[str, ...]] = {}
    """Words by kind of task, as `{"deploy": ["release"]}`; each brings up memories with such words."""
    session_tags: tuple[str, ...] = ()
    """Memories with these tags come up when a session begins."""


class _CaptureLimits(Table):
    """How much capture reads and keeps."""

    min_chars: Annotated[int, Field(ge=1, le=1_000)] = 10
    """Shorter messages are passed over."""
    max_chars: Annotated[int, Field(ge=100, le=16_000)] = 5_000
    """Longer messages are cut here."""
    turn: _Facts = 30
    """Memories of one message; the rest waits for `perdure review`."""
    session: _Facts = 500
    """The same for a conversation."""
    day: _Facts = 2_000
    """The same for a day."""


class _Compare(Table):
    """What a new memory is compared by."""

    exact: bool = True
    """Take the same text for the same fact."""
    normalised: bool = True
    """Take a text in other letters for the same fact."""
    vector: Annotated[_Share, AfterValidator(_none_or_near)] = 0.95
    """From this cosine on a text means the same; 0: it is not asked."""
    classify: bool = True
    """Find out which older fact a new one replaces."""


class _Jobs(Table):
    """Hours between two runs of each job, by its name."""

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
    """How much is kept of what only helps."""

    receipt_days: _Days = 30.0
    """What a turn considered is dropped after so long."""
    conversation_days: _Days | None = None
    """So are recorded conversations to which nothing was added; unset: they are kept."""
    copies: Annotated[int, Field(ge=1, le=1_000)] = 7
    """So many daily backups are kept, and as many exports."""


class _Search(Table):
    """How files and conversations are cut and searched."""

    chunk_tokens: Annotated[int, Field(ge=20, le=4_000)] = 400
    """Tokens of a piece of a Markdown file."""
    chunk_overlap: Annotated[int, Field(ge=0, le=2_000)] = 80
    """Tokens that a piece repeats of the one before."""
    max_results: Annotated[int, Field(ge=1, le=100)] = 6
    """Results of a search."""
    min_score: _Share = 0.35
    """What is less certain is left out."""
    candidates: Annotated[int, Field(ge=1, le=50)] = 4
    """Candidates of each leg, per result asked for."""
    vector_weight: _Share = 0.5
    """How much the meaning counts; words count for the rest."""
    half_life_days: Annotated[float, Field(gt=0)] = 30.0
    """A dated file counts half after so long."""
    mmr_lambda: _Share = 0.7
    """Score against variety; 1: score alone."""


class _Flush(Table):
    """When a host is asked to have its agent write down what a compaction is about to drop."""

    enabled: bool = True
    """Ask for it."""
    reserve_tokens: Annotated[int, Field(ge=0)] = 20_000
    """Tokens that the host keeps free."""
    soft_tokens: Annotated[int, Field(ge=0)] = 4_000
    """So many tokens before that, a flush is due."""
    prompt: str | None = None
    """The flush prompt, in other words."""
    system_prompt: str | None = None
    """Its system prompt, in other words."""


class _Llm(Table):
    """How the language model is used."""

    nano: str | None = None
    """Model for small tasks, as other wordings, decisions and categories; unset: `llm_model`."""
    heavy: str | None = None
    """Model for large tasks, as the patterns of `perdure reflect`; unset: `llm_model`."""
    daily_tokens: Annotated[int, Field(ge=0)] = 100_000
    """Tokens that it may use in a day (UTC), over all processes; 0: none."""
    timeout: Annotated[float, Field(gt=0, le=600)] = 15.0
    """Seconds for a request."""


class Settings(Table):
    """What a user can set. Every field has a default that works."""

    model_config = ConfigDict(protected_namespaces=())

    auto_recall: bool = True
    """Bring up memories before each turn."""
    auto_capture: bool = True
    """Keep what is worth keeping after each turn."""
    timezone: Annotated[str, AfterValidator(_zone)] = ""
    """Where you are, as `Europe/Lisbon`: by it "tomorrow" is counted, if neither message nor host tells; empty: as on
    this machine."""
    embedder: str = "auto"
    """Name of an embedder; "auto": the local model; "none": words only. Others: `docs/providers.md`."""
    embedder_model: str | None = None
    """Model of that embedder: a name or a folder; with `onnx` one that `perdure model list` shows."""
    embedder_endpoint: str | None = None
    """Address of its server, if it is not the usual one."""
    embedder_key_env: str | None = None
    """Name of the environment variable with its key, if it is not the usual one."""
    embedder_dims: Annotated[int | None, Field(ge=8, le=16_384)] = None
    """Numbers in a vector, if not the usual ones."""
    embedder_fallbacks: tuple[str, ...] = ()
    """Embedders that stand in, as `name` or `name=address`: for "auto" where the local model is missing, else for a
    server that fails, with the same model."""
    model_path: Path | None = None
    """The local model's ONNX file, or the folder with its files, if elsewhere; its sha256 is checked."""
    model_hub: str = "https://huggingface.co"
    """Where `perdure model fetch` fetches from: the hub's address, or a mirror's."""
    model_offline: bool = False
    """Fetch no model, whoever asks for it; `HF_HUB_OFFLINE=1` in the environment says the same."""
    model_switch: Literal["ask", "auto"] = "ask"
    """Another model: wait for a word, or switch."""
    reranker: str | None = None
    """Name of a reranker from an extension."""
    store_url: Annotated[str | None, Field(repr=False)] = None
    """PostgreSQL database for the memories, as `postgresql://...`; see `docs/postgresql.md`."""
    store_direct_url: Annotated[str | None, Field(repr=False)] = None
    """Address of that database past a pooler; it brings the schema up to date there."""
    store_tenant: str = "default"
    """Whose memories in that database; each sees its own alone."""
    ack: Literal["local", "database"] = "local"
    """Where a turn is once acknowledged: on this machine's disk, or in that database too."""
    vector_index: Literal["auto", "exact", "lance"] = "auto"
    """Which vector index answers."""
    index_crossover: Annotated[int, Field(ge=1_000)] = CROSSOVER
    """From so many memories on LanceDB answers."""
    index_after: _IndexAfter = _IndexAfter()
    """What starts the worker that indexes new memories."""
    recall_limit: Annotated[int, Field(ge=1, le=100)] = 10
    """Memories in a block at the most."""
    recall_max_tokens: Annotated[int, Field(ge=50, le=100_000)] = 800
    """Tokens of a block at the most."""
    recall_threshold: _Share | Literal["strict", "balanced", "generous"] = "balanced"
    """How likely a memory must help to come up: 0 to 1, or a name."""
    min_cosine: Annotated[float | None, Field(ge=-1, le=1)] = None
    """Floor of the cosine in place of the threshold."""
    recall_format: Literal["full", "short", "minimal", "progressive"] = "full"
    """`full`, `short`, `minimal`, or `progressive`: an index, which the agent opens by number."""
    recall_placement: Placement = Placement.HEAD
    """Where the block goes."""
    recall_deadline_ms: Annotated[int, Field(ge=1, le=60_000)] = 800
    """After this the turn goes on without."""
    recall_in_groups: bool = False
    """Show memories where others read the answer, too: by themselves and by tools."""
    recall_passages: Annotated[int, Field(ge=0, le=50)] = 8
    """Passages of memory files and conversations in a block at the most; 0: none."""
    opening_tokens: Annotated[int, Field(ge=0, le=100_000), AfterValidator(_nothing_or_a_block)] = 0
    """Tokens of what a session begins with, at the most; 0: standing instructions alone, in hosts that can show nothing
    later."""
    recall_profile: Literal["pinned", "standing", "off"] = "pinned"
    """What comes up in every turn that is answered: `pinned` memories, `standing` preferences and instructions as well,
    or `off`."""
    recall_expansion: Literal["search", "turn", "off"] = "search"
    """When the language model, if one is set, words a query in other ways too: in explicit searches (`search`), in
    every `turn` as well within its deadline, or never (`off`)."""
    directives: _Directives = _Directives()
    """What brings memories up whatever a search finds."""
    adjust: tuple[_Adjustment, ...] = ("salience", "confidence")
    """What a memory's score is multiplied by. `salience`, which grows with every use: 1 + 0.1 ln(uses + 1); to be put
    into a prompt is no use. `confidence`: 0.85 + 0.15 confidence. `importance_recency`: (0.7 + 0.3 importance) × (0.8 +
    0.2 of what is left of 90 days). `long_term`: 1.2 for what is permanent, 1.1 for what is stable. `freshness`, which
    falls in the last 7 days of a memory's life: 0.75 + 0.25 freshness."""
    summary_threshold: Annotated[int, Field(ge=1, le=100_000)] = 300
    """A memory of more characters is shown in a block by its summary."""
    capture_limits: _CaptureLimits = _CaptureLimits()
    """How much capture reads and keeps."""
    capture_learnt: bool = True
    """Heads that learnt it decide beside the rules what is kept."""
    capture_assistant: bool = False
    """Keep what the assistant says of the world as well: for review only, and never in the place of what you said."""
    capture_headless: bool = False
    """Keep what programs say in runs without a person, such as `claude -p` and `codex exec`, as if you had said it."""
    capture_patterns: dict[str, str] = {}
    """Own signals: regular expressions by name of a cue; a sentence that matches one is kept."""
    categories: dict[str, str] = {}
    """Own categories: regular expressions by name."""
    tag_patterns: dict[str, str] = {}
    """Own tags: regular expressions by tag."""
    compare: _Compare = _Compare()
    """What a new memory is compared by with those that are there."""
    auto_link: Annotated[int, Field(ge=0, le=50), BeforeValidator(_no_switch)] = 0
    """Links that a new fact gets to those that are near; 0: none."""
    timers: bool = True
    """Look after the store in the background."""
    jobs: _Jobs = _Jobs()
    """Hours between two runs of each job, by its name in `docs/jobs.md`; 0: never by itself."""
    retention_days: _Days = 365.0
    """An expired memory is removed after so long."""
    keep: _Keep = _Keep()
    """How long receipts and conversations are kept, and how many copies."""
    sources: tuple[Literal["memory", "sessions"], ...] = ("memory", "sessions")
    """What is searched: Markdown files, conversations; empty: neither."""
    workspace: Path | None = None
    """Folder with MEMORY.md and memory/."""
    extra_paths: tuple[str, ...] = ()
    """More folders or .md files to search."""
    record_sessions: bool = True
    """Keep conversations of hosts that keep none themselves; not while `auto_capture` is off."""
    watch: bool = True
    """Notice changed files at once; they are looked at before a search anyway."""
    search: _Search = _Search()
    """How files and conversations are cut and searched."""
    citations: Literal["auto", "on", "off"] = "auto"
    """Say where results stand; auto: not in groups."""
    prompt_max_chars: Annotated[int, Field(ge=0, le=200_000)] = 20_000
    """Hosts that ask are told how memory is to be used, with so much of MEMORY.md; 0: nothing at all."""
    flush: _Flush = _Flush()
    """How what a compaction is about to drop is written down before."""
    llm_endpoint: str | None = None
    """Address of a language model that understands OpenAI's chat form; unset: there is none, and nothing is ever
    asked."""
    llm_key_env: str | None = None
    """Name of the environment variable with its key; unset: it asks for none."""
    llm_model: str | None = None
    """Name of the model."""
    llm: _Llm = _Llm()
    """Models for small and large tasks, tokens of a day, and patience."""
    disabled_extensions: tuple[str, ...] = ()
    """Extensions that are not loaded."""

    def recalls(self, trigger: str) -> bool:
        """Return whether memories are brought up in a turn that was started so."""
        return self.auto_recall and trigger in ("user", HEADLESS)

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
        refuse_password(hosted, "the host's config")
        merged: dict[str, Any] = {}
        for where, source in (
            (f"it stands in {file or config_file(environ)}", from_file(file, environ)),
            ("it stands in the host's config", hosted),
            ("it comes from the environment", _from_environment(environ)),
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
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"][: 2 if table_of(str(first["loc"][0])) else 1]))
            raise SettingsError(
                f"setting {name} = {first['input']!r}: {first['msg'].partition(' or instance of ')[0]}"
            ) from None


def table_of(name: str) -> type[Table] | None:
    """Return the table that a setting is; None: it is none."""
    kind = Settings.model_fields[name].annotation if name in Settings.model_fields else None
    return kind if isinstance(kind, type) and issubclass(kind, Table) else None


def check_known(key: str, where: str = "", value: Any = None) -> None:
    """Refuse what is no setting, and what is no key of a table; `where` says in words where it was found."""
    known = list(Settings.model_fields)
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
