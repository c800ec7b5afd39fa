"""From settings to the options of each part, and to what extensions bring."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from perdure.capture.decide import Levels
from perdure.capture.describe import compile_tags
from perdure.capture.writing import WritingOptions
from perdure.embed.base import Embedder
from perdure.engine.builtins import BUILTINS
from perdure.engine.extensions import ExtensionManager
from perdure.engine.settings import Settings
from perdure.index.feeding import GrowingIndex, VectorCount
from perdure.index.vector_index import ExactIndex, Surveyor
from perdure.parts import part
from perdure.ranking.adjust import Adjustments
from perdure.recall.options import RecallOptions
from perdure.recall.pipeline import Reranker
from perdure.recall.unasked import directives
from perdure.store.fact import Summaries
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store


def load_extensions(settings: Settings) -> ExtensionManager:
    """Load the built-ins and the installed extensions."""
    return ExtensionManager.load(disabled=settings.disabled_extensions, builtins=BUILTINS)


def embedder_factory(settings: Settings, extensions: ExtensionManager) -> Callable[[], Embedder] | None:
    """Return a function that makes the embedder the settings name, or None if none is wanted.

    Raises:
        ExtensionError: there is no embedder of this name.
    """
    if settings.embedder == "none":
        return None
    factory = extensions.get("embedders", settings.embedder)

    def load() -> Embedder:
        embedder: Embedder = factory(settings)
        return embedder

    return load


def reranker_of(settings: Settings, extensions: ExtensionManager) -> Reranker | None:
    """Return the reranker that the settings name, or None if none is wanted.

    Raises:
        ExtensionError: there is no reranker of this name.
    """
    if settings.reranker is None:
        return None
    reranker: Reranker = extensions.get("rerankers", settings.reranker)()
    return reranker


def summaries_of(settings: Settings) -> Summaries:
    """Return which texts have a summary by the settings."""
    return Summaries(settings.summary_threshold, settings.summary_max_chars)


def recall_options(settings: Settings) -> RecallOptions:
    """Return how recall works by the settings."""
    return RecallOptions(
        limit=settings.recall_limit,
        passages=settings.recall_passages,
        profile=settings.recall_profile,
        profile_limit=settings.recall_profile_limit,
        link_depth=settings.recall_link_depth,
        directives=directives(
            entities=settings.directive_entities,
            keywords=settings.directive_keywords,
            tasks=settings.directive_tasks,
            session_tags=settings.directive_session_tags,
        ),
        adjustments=Adjustments(
            settings.adjust_importance_recency,
            settings.adjust_long_term,
            settings.adjust_salience,
            settings.adjust_freshness,
            settings.adjust_confidence,
        ),
        max_tokens=settings.recall_max_tokens,
        summaries=summaries_of(settings),
        format=settings.recall_format,
        placement=settings.recall_placement,
        deadline=settings.recall_deadline_ms / 1000,
        threshold=settings.recall_threshold,
    )


def writing_options(settings: Settings) -> WritingOptions:
    """Return how facts are compared and written by the settings.

    Raises:
        SettingsError: a tag's pattern is no regular expression.
    """
    levels = Levels(
        settings.duplicate_exact,
        settings.duplicate_normalised,
        settings.duplicate_vector,
        settings.duplicate_cosine,
        settings.classify_before_write,
    )
    return WritingOptions(
        levels,
        compile_tags(settings.tag_patterns),
        settings.auto_link,
        settings.auto_link_cosine,
        settings.auto_link_limit,
    )


def json_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that differ from their defaults, as JSON can hold them."""
    return dict(json.loads(settings.model_dump_json(exclude_defaults=True)))


def vector_index(store: Store, space: VectorSpace, settings: Settings, on_trouble: Callable[[], None]) -> Surveyor:
    """Return what finds nearest vectors: the database where it can, else what this process and LanceDB hold."""
    index: Surveyor
    if store.database.compares:
        index = part("postgres.vectors").DatabaseIndex(store.database, space.id, space.dims)
        return index
    exact = ExactIndex(store.database, space.id, space.dims)
    if settings.vector_index == "exact" or store.database.shared:
        # LanceDB's table is one machine's, and is not fed for a store that several share.
        return exact

    def tiered() -> Surveyor:
        made: Surveyor = part("lance.tiered").TieredIndex(
            store, space, exact=exact, mode=settings.vector_index, crossover=settings.index_crossover,
            storage_options=settings.lance_storage_options or None, on_trouble=on_trouble,
        )  # fmt: skip
        return made

    if settings.vector_index == "lance":
        return tiered()
    return GrowingIndex(exact, VectorCount(store.database, space.id), settings.index_crossover, tiered)
