"""From settings to the options of each part, and to what extensions bring."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perdure.embed.base import Embedder
from perdure.engine.extensions import ExtensionManager, Register, hookimpl
from perdure.engine.settings import Settings
from perdure.errors import ModelError, SettingsError
from perdure.extras import absent, how_to_install
from perdure.index.feeding import PACKAGES, GrowingIndex
from perdure.index.vector_index import ExactIndex, Surveyor
from perdure.llm import OWN, Asker, LanguageModel, Lent, Tier
from perdure.parts import part
from perdure.recall.expand import Expand, Model
from perdure.recall.options import DIRECTIVE, RecallOptions, directives
from perdure.recall.pipeline import Reranker
from perdure.store.fact import Summaries
from perdure.store.llm import TokenMeter
from perdure.store.scope import Scope
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.capture.writing import WritingOptions

REMOTE = ("openai", "gemini", "google", "voyage", "mistral", "ollama", "openai-compatible")
"""The names of `perdure.models.providers.PROVIDERS`, which are not loaded before they are needed."""
CLAUDE_CODE = "claude-code"
OPENCLAW = "openclaw"
"""What a host's name ends in where its program has a model: no other one sees what was said there."""
LOCAL = ("local", "builtin")
"""What others call the model that comes with them."""
_log = logging.getLogger("perdure.plugin")


def load_extensions(settings: Settings) -> ExtensionManager:
    """Load the built-ins and the installed extensions."""
    return ExtensionManager.load(disabled=settings.disabled_extensions, builtins=BUILTINS)


def embedder_factory(settings: Settings, extensions: ExtensionManager) -> Callable[[], Embedder] | None:
    """Return a function that makes the embedder the settings name, or None if none is wanted."""
    if settings.embedder == "none":
        return None
    return partial(extensions.get("embedders", settings.embedder), settings)


def reranker_of(settings: Settings, extensions: ExtensionManager) -> Reranker | None:
    """Return the reranker that the settings name, or None if none is wanted."""
    if settings.reranker is None:
        return None
    reranker: Reranker = extensions.get("rerankers", settings.reranker)()
    return reranker


def recall_options(settings: Settings) -> RecallOptions:
    """Return how recall works by the settings."""
    return RecallOptions(
        limit=settings.recall_limit, passages=settings.recall_passages, profile=settings.recall_profile,
        directives=directives(**dict(settings.directives)), adjustments=(*settings.adjust, DIRECTIVE),
        max_tokens=settings.recall_max_tokens, summaries=Summaries(settings.summary_threshold),
        format=settings.recall_format, placement=settings.recall_placement,
        deadline=settings.recall_deadline_ms / 1000, threshold=settings.recall_threshold,
        model=settings.embedder != "none", lexical=settings.index.lexical,
    )  # fmt: skip


def writing_options(settings: Settings) -> WritingOptions:
    """Return how facts are compared and written by the settings."""
    from perdure.capture.decide import Levels
    from perdure.capture.describe import compile_tags
    from perdure.capture.writing import WritingOptions

    levels = Levels(**settings.compare.model_dump(exclude={"auto_link"}))
    return WritingOptions(levels, compile_tags(settings.tag_patterns), settings.compare.auto_link)


def check_patterns(settings: Settings) -> None:
    """Refuse a pattern of the user's that is none, before anything is opened."""
    if settings.capture_patterns or settings.categories or settings.tag_patterns:
        from perdure.capture.describe import compile_categories, compile_tags
        from perdure.capture.rules import pattern_rules

        pattern_rules(settings.capture_patterns)
        compile_categories(settings.categories)
        compile_tags(settings.tag_patterns)


def check_table(settings: Settings) -> None:
    """Refuse settings that ask for LanceDB where it is not installed, before anything is opened."""
    if settings.store_url is not None or not absent(*PACKAGES):
        return
    given = {"vector_index": settings.vector_index == "lance", "index.lexical": settings.index.lexical == "lance"}
    for name, asks in (given | {"lance_url": settings.lance_url is not None}).items():
        if asks:
            raise SettingsError(
                f"setting {name} asks for LanceDB, which is not installed; run: {how_to_install('lancedb')}, or remove "
                "the setting"
            )


def vector_index(store: Store, space: VectorSpace, settings: Settings, on_trouble: Callable[[], None]) -> Surveyor:
    """Return what finds nearest vectors: the database where it can, else what this process and LanceDB hold."""
    if store.database.compares:
        index: Surveyor = part("postgres.vectors").DatabaseIndex(store.database, space.id, space.dims)
        return index
    exact = ExactIndex(store.database, space.id, space.dims)
    if settings.vector_index == "exact" or store.database.shared or absent(*PACKAGES):
        # LanceDB's table is one machine's, and is not fed for a store that several share.
        return GrowingIndex(exact, store.database, space.id)

    def tiered() -> Surveyor:
        made: Surveyor = part("lance.tiered").TieredIndex(
            store, space, exact=exact, mode=settings.vector_index, crossover=settings.index.crossover,
            on_trouble=on_trouble,
        )  # fmt: skip
        return made

    if settings.vector_index == "lance":
        return tiered()
    return GrowingIndex(exact, store.database, space.id, settings.index.crossover, tiered)


def python_host(**arguments: Any) -> object:
    """Make the small host that comes with perdure."""
    from perdure.hooks.fake_host import FakeHost

    return FakeHost(**arguments)


def _of_sentence_transformers(settings: Any) -> Any:
    name = settings.embedder_model or "sentence-transformers/all-MiniLM-L6-v2"
    return part("models.sentence_transformers").SentenceTransformerEmbedder(name)


def _remote(name: str, settings: Any) -> Any:
    return part("models.providers").remote_embedder(name, settings)


class Builtins:
    """The built-in embedders and hosts."""

    @hookimpl
    def perdure_register_embedders(self, register: Register) -> None:
        """Register the embedders: each factory takes the settings."""
        register("auto", auto_embedder)
        for name in ("onnx", *LOCAL):
            register(name, local_embedder)
        register("hash", hash_embedder)
        register("sentence-transformers", _of_sentence_transformers)
        for name in REMOTE:
            register(name, partial(_remote, name))

    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        """Register the hosts."""
        register("fake", python_host)


BUILTINS = (("perdure", Builtins()),)


def local_embedder(settings: Settings) -> Embedder:
    """Load the ONNX model of the catalogue that `embedder_model` names; unset: the default."""
    from perdure.embed.load import known_model, load_default, load_model

    if settings.embedder_model is None:
        return load_default(settings.model_path)
    return load_model(known_model(settings.embedder_model), settings.model_path)


def auto_embedder(settings: Settings) -> Embedder:
    """Load the default model; where there is none, connect to the first of `embedder_fallbacks` that can be used."""
    from perdure.embed.load import load_default

    try:
        # `embedder_model` is that of the fallbacks.
        return load_default(settings.model_path)
    except ModelError as error:
        if not settings.embedder_fallbacks:
            raise
        _log.warning("the local model cannot be used; falling back to: %s", error)
        fallback: Embedder = part("models.providers").first_of(settings, settings.embedder_model)
        return fallback


def hash_embedder(settings: Settings) -> Embedder:
    """Make the deterministic embedder for tests; it needs no model. `embedder_model` is its dimensions, if set."""
    from perdure.embed.deterministic import HashEmbedder

    if settings.embedder_model is None:
        return HashEmbedder()
    if not settings.embedder_model.isdecimal():
        raise SettingsError(f"setting embedder_model = {settings.embedder_model!r}: embedder hash takes a number")
    return HashEmbedder(int(settings.embedder_model))


def llm_factory(settings: Settings) -> Callable[[Store], Model | None]:
    """Return what makes the language model of an open store, or None if no endpoint is set."""
    if settings.llm_endpoint is None:
        return lambda store: None
    if settings.llm_model is None:
        raise SettingsError("llm_endpoint is set but llm_model is not; set llm_model to the name of a model there")
    usual, other = settings.llm_model, settings.llm
    models: dict[Tier, str] = {"nano": other.nano or usual, "default": usual}
    llm = part("models.llm")
    endpoint = llm.endpoint(settings.llm_endpoint, settings.llm_key_env, settings.llm.timeout)

    def make(store: Store) -> Model:
        meter = TokenMeter(store.database, store.clock, settings.llm.daily_tokens)
        made: Model = llm.Llm(endpoint, models, meter)
        return made

    return make


def librarian_model(
    settings: Settings, store: Store, model: Asker | None, lent: Mapping[str, Lent]
) -> Callable[[str, Sequence[str]], Asker | None]:
    """Return what tells the model that may read what was said in a host and is kept in scopes, its own first.

    That is the host's own where it has one, which OpenClaw lends to the process that it has started, and a program to
    itself, else the one that is set.
    """
    meter = TokenMeter(store.database, store.clock, settings.llm.daily_tokens)

    def of(host: str, scopes: Sequence[str]) -> Asker | None:
        own: Asker | None
        if host == CLAUDE_CODE:
            own = part("models.claude").claude(meter)
            return own
        lender = host[host.index(OWN) :] if OWN in host else host
        if lender != OPENCLAW and OWN not in lender:
            return model
        agent = Scope.parse(scopes[0]).agent or ""
        if lender not in lent or (lender == OPENCLAW and not agent):
            return None
        own = part("models.own").OwnModel(lent[lender](agent), meter)
        return own

    return of


def lent_by(program: LanguageModel | None) -> Mapping[str, Lent]:
    """Return the model that a program has as one that it lends, whoever the agent is.

    Its mark is the same at each start of the program, and another for another program or model.
    """
    if program is None:
        return {}
    of = program if hasattr(program, "__qualname__") else type(program)
    which = (os.path.abspath(sys.argv[0]), of.__module__, of.__qualname__, str(getattr(program, "model_name", "")))  # noqa: PTH100
    mark = hashlib.sha256("\0".join(which).encode()).hexdigest()[:8]
    return {f"{OWN}{mark})": lambda agent: part("models.own").Program(program)}


def in_search(settings: Settings, wanted: bool | None) -> Expand:
    """Return whether an explicit search is also asked in other words: as wanted, else as set."""
    return "wait" if (settings.llm.expansion != "off" if wanted is None else wanted) else "no"


def in_turn(settings: Settings) -> Expand:
    """Return whether a turn is."""
    return "turn" if settings.llm.expansion == "turn" else "no"


def llm_state(settings: Settings, store: Store) -> str:
    """Return what `perdure status` says of the language model: which, and how much of the day's tokens is used."""
    if settings.llm_endpoint is None:
        return "off: no llm_endpoint is set"
    used = TokenMeter(store.database, store.clock, settings.llm.daily_tokens).used()
    tiers = ", ".join(f"{tier} {tokens}" for tier, tokens in sorted(used.items()) if tokens)
    detail = f" ({tiers})" if tiers else ""
    return f"{settings.llm_model}: {sum(used.values())} of {settings.llm.daily_tokens} tokens used today{detail}"
