"""All settings, from four sources, in one model."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perdure.engine.paths import config_file
from perdure.engine.setting_sources import PREFIX, from_environment, from_file, of_text, refuse_password, snake
from perdure.errors import SettingsError
from perdure.hooks.types import Placement
from perdure.index.feeding import CROSSOVER


class Settings(BaseModel):
    """What a user can set. Every field has a default that works."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    auto_recall: bool = Field(True, description="Bring up memories before each turn.")
    auto_capture: bool = Field(True, description="Keep what is worth keeping after each turn.")
    embedder: str = Field(
        "auto",
        description='Name of an embedder; "auto": the local model; "none": words only. Others: `docs/providers.md`.',
    )
    embedder_model: str | None = Field(
        None, description="Model of that embedder: a name or a folder; with `onnx` one that `perdure model list` shows."
    )
    embedder_endpoint: str | None = Field(None, description="Address of its server, if it is not the usual one.")
    embedder_key_env: str | None = Field(
        None, description="Name of the environment variable with its key, if it is not the usual one."
    )
    embedder_dims: int | None = Field(None, ge=8, le=16_384, description="Numbers in a vector, if not the usual ones.")
    embedder_timeout: float = Field(20.0, gt=0, le=600, description="Seconds for a request to its server.")
    embedder_fallbacks: tuple[str, ...] = Field(
        (),
        description=(
            'Embedders that stand in, as `name` or `name=address`: for "auto" where the local model is '
            "missing, else for a server that fails, with the same model."
        ),
    )
    model_path: Path | None = Field(
        None,
        description="The local model's ONNX file, or the folder with its files, if elsewhere; its sha256 is checked.",
    )
    model_hub: str = Field(
        "https://huggingface.co",
        description="Where `perdure model fetch` fetches from: the hub's address, or a mirror's.",
    )
    model_offline: bool = Field(
        False, description="Fetch no model, whoever asks for it; `HF_HUB_OFFLINE=1` in the environment says the same."
    )
    model_switch: Literal["ask", "auto"] = Field("ask", description="Another model: wait for a word, or switch.")
    model_threads: int = Field(1, ge=1, le=64, description="CPU threads of the local model.")
    reranker: str | None = Field(None, description="Name of a reranker from an extension.")
    store_url: str | None = Field(
        None,
        repr=False,
        description="PostgreSQL database for the memories, as `postgresql://...`; see `docs/postgresql.md`.",
    )
    store_direct_url: str | None = Field(
        None, repr=False, description="Address of that database past a pooler; it brings the schema up to date there."
    )
    store_tenant: str = Field("default", description="Whose memories in that database; each sees its own alone.")
    ack: Literal["local", "database"] = Field(
        "local",
        description="Where a turn is once acknowledged: on this machine's disk, or in that database too.",
    )
    vector_index: Literal["auto", "exact", "lance"] = Field("auto", description="Which vector index answers.")
    recall_limit: int = Field(10, ge=1, le=100, description="Memories in a block at the most.")
    recall_in_groups: bool = Field(
        False, description="Show memories where others read the answer, too: by themselves and by tools."
    )
    recall_passages: int = Field(
        8, ge=0, le=50, description="Passages of memory files and conversations in a block at the most; 0: none."
    )
    recall_passage_floor: float = Field(
        0.55,
        ge=0,
        le=1,
        description=(
            "How sure a passage must be (0 to 1, the score of a search) to come up unasked; `python -m "
            "bench locomo` prints what it costs and saves."
        ),
    )
    recall_profile: Literal["pinned", "standing", "off"] = Field(
        "pinned",
        description=(
            "What comes up in every turn that is answered: `pinned` memories, `standing` preferences and "
            "instructions as well, or `off`."
        ),
    )
    recall_profile_limit: int = Field(5, ge=0, le=50, description="Facts of that kind at the most.")
    recall_link_depth: int = Field(2, ge=0, le=5, description="How many links far facts are followed.")
    directive_entities: tuple[str, ...] = Field((), description="Each brings up its memories when a prompt names it.")
    directive_keywords: tuple[str, ...] = Field(
        (), description="Each brings up the memories that hold it when a prompt does."
    )
    directive_tasks: dict[str, tuple[str, ...]] = Field(
        {},
        description=(
            'Words by kind of task, such as `{"deploy": ["release", "rollout"]}`; each kind brings up the '
            "memories with such words."
        ),
    )
    directive_session_tags: tuple[str, ...] = Field(
        (), description="Memories with these tags come up when a session begins."
    )
    adjust_salience: bool = Field(
        True, description="What was used counts more: × (1 + 0.1 ln(uses + 1)). To be put into a prompt is no use."
    )
    adjust_confidence: bool = Field(True, description="What is less certain counts less: × (0.85 + 0.15 confidence).")
    adjust_importance_recency: bool = Field(
        False, description="× (0.7 + 0.3 importance) × (0.8 + 0.2 of what is left of 90 days)."
    )
    adjust_long_term: bool = Field(False, description="× 1.2 for what is permanent, × 1.1 for what is stable.")
    adjust_freshness: bool = Field(
        False, description="× (0.75 + 0.25 freshness), which falls in the last 7 days of a memory's life."
    )
    recall_max_tokens: int = Field(800, ge=50, le=100_000, description="Tokens of a block at the most.")
    summary_threshold: int = Field(
        300, ge=1, le=100_000, description="A memory of more characters is shown in a block by its summary."
    )
    summary_max_chars: int = Field(
        80,
        ge=10,
        le=10_000,
        description="Characters of a summary that is cut out of the text; one that was given stays whole.",
    )
    recall_format: Literal["full", "short", "minimal", "progressive"] = Field(
        "full", description="`full`, `short`, `minimal`, or `progressive`: an index, which the agent opens by number."
    )
    recall_placement: Placement = Field(Placement.HEAD, description="Where the block goes.")
    recall_expansion: Literal["search", "turn", "off"] = Field(
        "search",
        description=(
            "When the language model, if one is set, words a query in other ways too: in explicit searches "
            "(`search`), in every `turn` as well within its deadline, or never (`off`)."
        ),
    )
    recall_deadline_ms: int = Field(800, ge=1, le=60_000, description="After this the turn goes on without.")
    recall_threshold: Annotated[float, Field(ge=0, le=1)] | Literal["strict", "balanced", "generous"] = Field(
        "balanced", description="How likely a memory must help to come up: 0 to 1, or a name."
    )
    min_cosine: float | None = Field(None, ge=-1, le=1, description="Floor of the cosine in place of the threshold.")
    capture_min_chars: int = Field(10, ge=1, le=1_000, description="Shorter messages are passed over.")
    capture_max_chars: int = Field(5_000, ge=100, le=16_000, description="Longer messages are cut here.")
    capture_learnt: bool = Field(True, description="Heads that learnt it decide beside the rules what is kept.")
    capture_assistant: bool = Field(
        False,
        description=(
            "Keep what the assistant says of the world as well: for review only, and never in the place of "
            "what you said."
        ),
    )
    capture_turn_facts: int = Field(
        30,
        ge=1,
        le=10_000,
        description="So many memories of one message are kept; the rest waits for `perdure review`.",
    )
    capture_session_facts: int = Field(500, ge=1, le=1_000_000, description="The same for a conversation.")
    capture_day_facts: int = Field(2_000, ge=1, le=1_000_000, description="The same for a day.")
    capture_patterns: dict[str, str] = Field(
        {}, description="Own signals: regular expressions by name of a cue; a sentence that matches one is kept."
    )
    duplicate_exact: bool = Field(True, description="Take the same text for the same fact.")
    duplicate_normalised: bool = Field(True, description="Take a text in other letters for the same fact.")
    duplicate_vector: bool = Field(True, description="Take a text that means the same for the same fact.")
    duplicate_cosine: float = Field(0.95, ge=0.5, le=1, description="From this cosine on it means the same.")
    classify_before_write: bool = Field(True, description="Find out which older fact a new one replaces.")
    auto_link: bool = Field(False, description="Link a new fact to those that are near.")
    auto_link_cosine: float = Field(0.7, ge=0, le=1, description="From this cosine on facts are near.")
    auto_link_limit: int = Field(3, ge=1, le=50, description="Links that a new fact gets at the most.")
    categories: dict[str, str] = Field({}, description="Own categories: regular expressions by name.")
    tag_patterns: dict[str, str] = Field({}, description="Own tags: regular expressions by tag.")
    index_crossover: int = Field(CROSSOVER, ge=1_000, description="From so many memories on LanceDB answers.")
    lance_storage_options: dict[str, str] = Field({}, description="Options of LanceDB for other storage.")
    index_batch: int = Field(50, ge=1, le=10_000, description="So many new vectors start the index worker.")
    index_seconds: float = Field(30.0, ge=0, le=86_400, description="So long a new vector waits for the worker.")
    timers: bool = Field(True, description="Look after the store in the background.")
    prune_minutes: float = Field(60.0, ge=0, description="Between two prunes; 0 here and below: never by itself.")
    retention_days: float = Field(365.0, ge=0, description="An expired memory is removed after so long.")
    receipt_days: float = Field(30.0, ge=0, description="What a turn considered is dropped after so long.")
    conversation_days: float | None = Field(
        None, ge=0, description="So are recorded conversations to which nothing was added; unset: they are kept."
    )
    classify_hours: float = Field(24.0, ge=0, description="Between two looks at memories without a category.")
    sync_minutes: float = Field(15.0, ge=0, description="Between two looks for changed files, beside the watching.")
    calibrate_hours: float = Field(24.0, ge=0, description="Between two measurements of how near chance comes.")
    optimise_hours: float = Field(24.0, ge=0, description="Between two clean-ups of the LanceDB table.")
    backup_hours: float = Field(24.0, ge=0, description="Between two backups.")
    backup_keep: int = Field(7, ge=1, le=1_000, description="So many of these backups are kept.")
    export_hours: float = Field(24.0, ge=0, description="Between two exports, if anything has changed.")
    export_keep: int = Field(7, ge=1, le=1_000, description="So many of these exports are kept.")
    reconcile_hours: float = Field(24.0, ge=0, description="Between two comparisons of all stores and indexes.")
    tidy_hours: float = Field(168.0, ge=0, description="Between two tidyings of the database file.")
    canary_hours: float = Field(24.0, ge=0, description="Between two tests of the way from capture to recall.")
    sources: tuple[Literal["memory", "sessions"], ...] = Field(
        ("memory", "sessions"), description="What is searched: Markdown files, conversations; empty: neither."
    )
    workspace: Path | None = Field(None, description="Folder with MEMORY.md and memory/.")
    extra_paths: tuple[str, ...] = Field((), description="More folders or .md files to search.")
    record_sessions: bool = Field(
        True, description="Keep conversations of hosts that keep none themselves; not while `auto_capture` is off."
    )
    chunk_tokens: int = Field(400, ge=20, le=4_000, description="Tokens of a piece of a Markdown file.")
    chunk_overlap: int = Field(80, ge=0, le=2_000, description="Tokens that a piece repeats of the one before.")
    file_max_mb: float = Field(10.0, gt=0, le=1_000, description="Larger Markdown files are passed over.")
    watch: bool = Field(True, description="Notice changed files at once; they are looked at before a search anyway.")
    watch_debounce_ms: int = Field(1_500, ge=10, le=600_000, description="Quiet time before changes are read.")
    session_delta_bytes: int = Field(100_000, ge=1, description="New bytes after which a conversation is read again.")
    session_delta_messages: int = Field(50, ge=1, description="New messages after which it is.")
    embedding_cache_entries: int = Field(50_000, ge=0, description="Vectors kept of texts that are in no file now.")
    search_max_results: int = Field(6, ge=1, le=100, description="Results of a search of files.")
    search_min_score: float = Field(0.35, ge=0, le=1, description="What is less certain is left out.")
    search_candidates: int = Field(4, ge=1, le=50, description="Candidates of each leg, per result asked for.")
    file_vector_weight: float = Field(0.5, ge=0, le=1, description="Meaning, for Markdown files.")
    file_keyword_weight: float = Field(0.5, ge=0, le=1, description="Words, for Markdown files.")
    session_vector_weight: float = Field(0.5, ge=0, le=1, description="Meaning, for conversations.")
    session_keyword_weight: float = Field(0.5, ge=0, le=1, description="Words, for conversations.")
    half_life_days: float = Field(30.0, gt=0, description="A dated file counts half after so long.")
    mmr_lambda: float = Field(0.7, ge=0, le=1, description="Score against variety; 1: score alone.")
    citations: Literal["auto", "on", "off"] = Field("auto", description="Say where results stand; auto: not in groups.")
    prompt_sections: bool = Field(True, description="Tell hosts that ask how memory is to be used.")
    prompt_max_chars: int = Field(20_000, ge=100, le=200_000, description="MEMORY.md in a prompt is cut here.")
    flush_enabled: bool = Field(True, description="Write down what a compaction is about to drop.")
    flush_reserve_tokens: int = Field(20_000, ge=0, description="Tokens that the host keeps free.")
    flush_soft_tokens: int = Field(4_000, ge=0, description="So many tokens before that, a flush is due.")
    flush_prompt: str | None = Field(None, description="The flush prompt, in other words.")
    flush_system_prompt: str | None = Field(None, description="Its system prompt, in other words.")
    llm_endpoint: str | None = Field(
        None,
        description=(
            "Address of a language model that understands OpenAI's chat form; unset: there is none, and "
            "nothing is ever asked."
        ),
    )
    llm_key_env: str | None = Field(
        None, description="Name of the environment variable with its key; unset: it asks for none."
    )
    llm_model: str | None = Field(None, description="Name of the model.")
    llm_model_nano: str | None = Field(
        None, description="Model for small tasks, as other wordings, decisions and categories; unset: `llm_model`."
    )
    llm_model_heavy: str | None = Field(
        None, description="Model for large tasks, as the patterns of `perdure reflect`; unset: `llm_model`."
    )
    llm_timeout: float = Field(15.0, gt=0, le=600, description="Seconds for a request to it.")
    llm_daily_tokens: int = Field(
        100_000, ge=0, description="Tokens that it may use in a day (UTC), over all processes; 0: none."
    )
    consolidate_cosine: float = Field(
        0.92,
        ge=0.5,
        le=1,
        description=(
            "From this cosine on `perdure consolidate` may merge two memories, if their words say the same too."
        ),
    )
    reflect_days: float = Field(14.0, gt=0, le=36_500, description="Days that `perdure reflect` looks back.")
    reflect_observations: int = Field(
        2, ge=2, le=1_000, description="Memories that make a pattern; they must be of two days at least."
    )
    disabled_extensions: tuple[str, ...] = Field((), description="Extensions that are not loaded.")

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

        Args:
            keywords: as given in code.
            host_config: the plugin's part of the host's config; camelCase is understood.
            environ: variables PERDURE_<SETTING>.
            file: a TOML file; None: the user's, if there is one.

        Raises:
            SettingsError: a key is unknown, a value does not fit, or the file cannot be read.
        """
        merged: dict[str, Any] = {}
        refuse_password({snake(key): value for key, value in (host_config or {}).items()}, "the host's config")
        for where, source in (
            (f"it stands in {file or config_file(environ)}", from_file(file, environ)),
            ("it stands in the host's config", {snake(key): value for key, value in (host_config or {}).items()}),
            ("it comes from the environment", from_environment(environ)),
            ("", dict(keywords or {})),
        ):
            for key in source:
                check_known(key, where)
            merged |= source
        return cls._checked(merged)

    @classmethod
    def origins(cls, *, environ: Mapping[str, str] = os.environ, file: Path | None = None) -> dict[str, str]:
        """Return where each setting comes from that is set: its environment variable, or the settings file.

        Raises:
            SettingsError: the file cannot be read.
        """
        path = str(file or config_file(environ))
        of_file = dict.fromkeys(from_file(file, environ), path)
        return of_file | {key: f"{PREFIX}{key.upper()}" for key in from_environment(environ)}

    @classmethod
    def parse(cls, name: str, text: str) -> Any:
        """Return the value that a text gives a setting, in the form of environment variables, as JSON could hold it.

        Raises:
            SettingsError: there is no such setting, or the value does not fit.
        """
        check_known(name)
        given = cls._checked({name: of_text(name, name, text)})
        return given.model_dump(mode="json", include={name})[name]

    @classmethod
    def _checked(cls, values: Mapping[str, Any]) -> Settings:
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"][:1])
            raise SettingsError(f"setting {name} = {values.get(name)!r}: {first['msg']}") from None


def check_known(key: str, where: str = "") -> None:
    """Refuse what is no setting.

    Args:
        key: its name.
        where: where it was found, in words.

    Raises:
        SettingsError: with the nearest one.
    """
    known = list(Settings.model_fields)
    if key not in known:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"known settings: {', '.join(known)}"
        raise SettingsError(f"setting {key!r} is unknown; {hint}{where and f' ({where})'}")
