"""The servers and models that perdure knows by name. None is used unless a setting names it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from perdure.errors import ModelError, SettingsError
from perdure.models.endpoint import Address, Endpoint, Key
from perdure.models.remote import FailoverEmbedder, RemoteEmbedder, RemoteModel, Wire
from perdure.text.lexicon import table

if TYPE_CHECKING:
    from perdure.embed.base import Embedder
    from perdure.engine.settings import Settings


_UNKNOWN_TOKENS: Final = 2048
"""Of a model that is not in the table, as bytes: about what the smallest ones, of 512 tokens, read of English."""


_KNOWN: Final = table("models", "providers")
_MODELS: Final = {name: RemoteModel(name, **about) for name, about in _KNOWN["models"].items()}
_log = logging.getLogger("perdure.plugin")


def _ask_openai(model: RemoteModel, texts: Sequence[str], query: bool) -> tuple[str, dict[str, Any]]:
    """POST /embeddings; Mistral, Voyage and most local servers understand it too.

    Sources: https://platform.openai.com/docs/api-reference/embeddings, https://docs.mistral.ai/api/endpoint/embeddings.
    """
    body: dict[str, Any] = {"model": model.name, "input": list(texts)}
    return "/embeddings", body | ({"dimensions": model.dims} if model.shortened else {})


def _ask_voyage(model: RemoteModel, texts: Sequence[str], query: bool) -> tuple[str, dict[str, Any]]:
    """POST /embeddings with the kind of text. Source: https://docs.voyageai.com/reference/embeddings-api."""
    body: dict[str, Any] = {"model": model.name, "input": list(texts)}
    body |= {"input_type": "query" if query else "document", "truncation": True}
    return "/embeddings", body | ({"output_dimension": model.dims} if model.shortened else {})


def _read_data(answer: Any) -> Sequence[Sequence[float]]:
    # The entries say themselves which text they are of.
    return [entry["embedding"] for entry in sorted(answer["data"], key=lambda entry: int(entry["index"]))]


def _ask_ollama(model: RemoteModel, texts: Sequence[str], query: bool) -> tuple[str, dict[str, Any]]:
    """POST /api/embed. Source: https://github.com/ollama/ollama/blob/main/docs/api.md#generate-embeddings."""
    # It knows no tasks: a model that tells queries from documents wants a prefix in the text itself.
    body: dict[str, Any] = {"model": model.name, "input": list(texts), "truncate": True}
    return "/api/embed", body | ({"dimensions": model.dims} if model.shortened else {})


def _ask_gemini(model: RemoteModel, texts: Sequence[str], query: bool) -> tuple[str, dict[str, Any]]:
    """POST models/<model>:batchEmbedContents. Source: https://ai.google.dev/api/embeddings."""
    name = f"models/{model.name.removeprefix('models/')}"
    common: dict[str, Any] = {"model": name, "taskType": "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"}
    common |= {"outputDimensionality": model.dims} if model.shortened else {}
    return f"/{quote(name)}:batchEmbedContents", {
        "requests": [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
    }


_OPENAI: Final = Wire(_ask_openai, _read_data, batch=128, cuts=False)
_WIRES: Final = {
    "openai": _OPENAI,
    "mistral": replace(_OPENAI, batch_bytes=16_000),  # so many tokens are the most that it takes in one request
    "voyage": Wire(_ask_voyage, _read_data, batch=128, tasks=("input_type=query ", "input_type=document ")),
    "ollama": Wire(_ask_ollama, lambda answer: answer["embeddings"], batch=32),
    "gemini": Wire(
        _ask_gemini, lambda answer: [entry["values"] for entry in answer["embeddings"]], batch=100,
        tasks=("taskType=RETRIEVAL_QUERY ", "taskType=RETRIEVAL_DOCUMENT "),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of server: the form that it understands, its usual address and model, and its key."""

    wire: Wire
    url: str | None  # None: a setting must name it
    model: str | None  # None: a setting must name it
    key: Key | None


PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType({
    name: Provider(_WIRES[has["wire"]], has.get("url"), has.get("model"), Key(**has["key"]) if "key" in has else None)
    for name, has in _KNOWN["provider"].items()
})  # fmt: skip
"""By name, in the order in which the documents list them."""


def connect(
    name: str, *, model: str | None = None, url: str | None = None, key_variable: str | None = None,
    dims: int | None = None, timeout: float = 20.0,
) -> RemoteEmbedder:  # fmt: skip
    """Make the embedder of a provider, a key of `PROVIDERS`, or with another model, address or variable of the key.

    `dims` is the length of a vector, to shorten those of a known model or to know those of another; `timeout` in
    seconds. Raises SettingsError if there is no such provider, or it lacks an address or a model; ModelError if its key
    is missing, or it was asked for the length of its vectors and did not answer.
    """
    provider = PROVIDERS.get(name)
    if provider is None:
        raise SettingsError(f"{name!r} is not an embedding provider; known providers: {', '.join(PROVIDERS)}")
    address = url or provider.url
    if address is None:
        raise SettingsError(f"embedder {name} requires a server address; set embedder_endpoint")
    wanted = model or provider.model
    if wanted is None:
        raise SettingsError(f"embedder {name} requires a model name; set embedder_model")
    key = provider.key
    if key_variable:
        key = replace(key or Key(key_variable), variable=key_variable, needed=True)
    return RemoteEmbedder(_model(wanted, dims), provider.wire, Endpoint(Address(address, key), timeout))


def _model(name: str, dims: int | None) -> RemoteModel:
    # Ollama adds the tag by itself, so the name means the same without it.
    plain = name.removesuffix(":latest")
    known = _MODELS.get(plain)
    if known is None:
        return RemoteModel(plain, dims or 0, _UNKNOWN_TOKENS)
    if dims is None or dims == known.dims:
        return known
    return replace(known, dims=dims, shortened=True)


def remote_embedder(name: str, settings: Settings) -> Embedder:
    """Connect to a provider; `embedder_fallbacks` stand in for it with the same model."""
    model = settings.embedder_model or PROVIDERS[name].model
    key = settings.embedder_key_env
    try:
        first = connect(
            name, model=model, url=settings.embedder_endpoint, key_variable=key, dims=settings.embedder_dims
        )
    except ModelError as error:
        if not settings.embedder_fallbacks:
            raise
        _log.warning("embedder %s cannot be used; falling back to: %s", name, error)
        return first_of(settings, model, error)
    return _chained([first, *_usable(settings, model)])


def first_of(settings: Settings, model: str | None, problem: ModelError | None = None) -> Embedder:
    """Connect to the first of the fallbacks that can be used, with the others of its model behind it."""
    usable = _usable(settings, model)
    if not usable:
        names = ", ".join(settings.embedder_fallbacks)
        raise problem or ModelError(f"none of embedder_fallbacks = {names} can be used; see the log")
    # Without a model that the settings name, each provider has its own: only the same may stand in.
    return _chained([each for each in usable if each.identity == usable[0].identity])


def _usable(settings: Settings, model: str | None) -> list[Embedder]:
    """Connect to the fallbacks, written "name" or "name=address"; one that cannot be used is left out and logged."""
    found: list[Embedder] = []
    for each in settings.embedder_fallbacks:
        name, _, url = each.partition("=")
        try:
            found.append(connect(name.strip(), model=model, url=url.strip() or None, dims=settings.embedder_dims))
        except ModelError as error:
            _log.warning("embedder %s cannot be used: %s", name, error)
    return found


def _chained(embedders: Sequence[Embedder]) -> Embedder:
    return embedders[0] if len(embedders) == 1 else FailoverEmbedder(embedders)
