"""The language model that settings name, and what it is used for."""

from __future__ import annotations

from collections.abc import Callable

from perdure.capture.writing import LanguageJudge
from perdure.engine.composing import writing_options
from perdure.engine.settings import Settings
from perdure.errors import SettingsError
from perdure.llm import Tier
from perdure.parts import part
from perdure.recall.expand import Expand, Model
from perdure.store.llm import TokenMeter
from perdure.store.store import Store


def llm_factory(settings: Settings) -> Callable[[Store], Model | None]:
    """Return what makes the language model of an open store, or None if no endpoint is set.

    Raises:
        SettingsError: the address cannot be used, or no model is named.
    """
    if settings.llm_endpoint is None:
        return lambda store: None
    if settings.llm_model is None:
        raise SettingsError("llm_endpoint is set and llm_model is not; set llm_model to the name of a model there")
    models: dict[Tier, str] = {
        "nano": settings.llm_model_nano or settings.llm_model,
        "default": settings.llm_model,
        "heavy": settings.llm_model_heavy or settings.llm_model,
    }
    llm = part("models.llm")
    endpoint = llm.endpoint(settings.llm_endpoint, settings.llm_key_env, settings.llm_timeout)

    def make(store: Store) -> Model:
        meter = TokenMeter(store.database, store.clock, settings.llm_daily_tokens)
        made: Model = llm.Llm(endpoint, models, meter)
        return made

    return make


def judge_of(settings: Settings, store: Store, model: Model | None) -> LanguageJudge | None:
    """Return what asks the language model where the rules of capture are unsure; None without one."""
    return LanguageJudge(store, model, writing_options(settings).levels) if model else None


def in_search(settings: Settings, wanted: bool | None) -> Expand:
    """Return whether an explicit search is also asked in other words: as wanted, else as set."""
    return "wait" if (settings.recall_expansion != "off" if wanted is None else wanted) else "no"


def in_turn(settings: Settings) -> Expand:
    """Return whether a turn is."""
    return "turn" if settings.recall_expansion == "turn" else "no"


def llm_state(settings: Settings, store: Store) -> str:
    """Return what `perdure status` says of the language model: which, and how much of the day's tokens is used.

    Raises:
        StoreError: the count cannot be read.
    """
    if settings.llm_endpoint is None:
        return "off: no llm_endpoint is set"
    used = TokenMeter(store.database, store.clock, settings.llm_daily_tokens).used()
    tiers = ", ".join(f"{tier} {tokens}" for tier, tokens in sorted(used.items()) if tokens)
    detail = f" ({tiers})" if tiers else ""
    return f"{settings.llm_model}: {sum(used.values())} of {settings.llm_daily_tokens} tokens used today{detail}"
