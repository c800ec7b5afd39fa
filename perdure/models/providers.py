"""The servers and models that perdure knows by name. None is used unless a setting names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from perdure.errors import SettingsError
from perdure.models.address import Address, Key
from perdure.models.endpoint import Endpoint
from perdure.models.gemini_wire import GeminiWire
from perdure.models.ollama_wire import OllamaWire
from perdure.models.openai_wire import OpenAiWire, VoyageWire
from perdure.models.remote import RemoteEmbedder, RemoteModel, Wire

_UNKNOWN_TOKENS: Final = 2048
"""Of a model that is not in the table, as bytes: about what the smallest ones, of 512 tokens, read of English."""

_MODELS: Final = {
    model.name: model
    for model in (
        RemoteModel("text-embedding-3-small", 1536, 8191),
        RemoteModel("text-embedding-3-large", 3072, 8191),
        RemoteModel("text-embedding-ada-002", 1536, 8191),
        RemoteModel("gemini-embedding-001", 3072, 2048),
        RemoteModel("voyage-3", 1024, 32_000),
        RemoteModel("voyage-3-lite", 512, 32_000),
        RemoteModel("voyage-3-large", 1024, 32_000),
        RemoteModel("voyage-3.5", 1024, 32_000),
        RemoteModel("voyage-3.5-lite", 1024, 32_000),
        RemoteModel("mistral-embed", 1024, 8192),
        RemoteModel("nomic-embed-text", 768, 2048, "search_query: ", "search_document: "),
        RemoteModel(
            "mxbai-embed-large", 1024, 512, "Represent this sentence for searching relevant passages: "
        ),
        RemoteModel("all-minilm", 384, 256),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of server.

    Attributes:
        wire: makes the form that it understands.
        url: its base address; None: a setting must name it.
        model: the model that is used if no setting names one; None: a setting must.
        key: what it asks for; None: nothing.
    """

    wire: Callable[[], Wire]
    url: str | None
    model: str | None
    key: Key | None


_GEMINI: Final = Provider(
    GeminiWire, "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-001",
    Key("GEMINI_API_KEY", "x-goog-api-key", ""),
)  # fmt: skip

PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType({
    "openai": Provider(
        OpenAiWire, "https://api.openai.com/v1", "text-embedding-3-small", Key("OPENAI_API_KEY")
    ),
    "gemini": _GEMINI,
    "google": _GEMINI,  # as other memory systems name it
    "voyage": Provider(VoyageWire, "https://api.voyageai.com/v1", "voyage-3", Key("VOYAGE_API_KEY")),
    # 16 000 tokens are the most that Mistral takes in one request.
    "mistral": Provider(
        lambda: OpenAiWire(batch_bytes=16_000), "https://api.mistral.ai/v1", "mistral-embed", Key("MISTRAL_API_KEY")
    ),
    "ollama": Provider(OllamaWire, "http://localhost:11434", "nomic-embed-text", None),
    "openai-compatible": Provider(OpenAiWire, None, None, Key("OPENAI_COMPATIBLE_API_KEY", needed=False)),
})  # fmt: skip
"""By name, in the order in which the documents list them."""


def connect(
    name: str,
    *,
    model: str | None = None,
    url: str | None = None,
    key_variable: str | None = None,
    dims: int | None = None,
    timeout: float = 20.0,
) -> RemoteEmbedder:
    """Make the embedder of a provider.

    Args:
        name: of the provider, a key of `PROVIDERS`.
        model: another model than its usual one.
        url: another base address.
        key_variable: another environment variable for the key.
        dims: length of a vector, to shorten those of a known model or to know those of another; None: the usual.
        timeout: seconds for a request.

    Raises:
        SettingsError: there is no such provider, or it lacks an address or a model.
        ModelError: its key is missing, or it was asked for the length of its vectors and did not answer.
    """
    provider = PROVIDERS.get(name)
    if provider is None:
        raise SettingsError(f"{name!r} is no provider of embeddings; known are: {', '.join(PROVIDERS)}")
    address = url or provider.url
    if address is None:
        raise SettingsError(f"embedder {name} needs the address of a server; set embedder_endpoint")
    wanted = model or provider.model
    if wanted is None:
        raise SettingsError(f"embedder {name} needs the name of a model; set embedder_model")
    key = provider.key
    if key_variable:
        key = replace(key or Key(key_variable), variable=key_variable, needed=True)
    return RemoteEmbedder(_model(wanted, dims), provider.wire(), Endpoint(Address(address, key), timeout))


def _model(name: str, dims: int | None) -> RemoteModel:
    # Ollama adds the tag by itself, so the name means the same without it.
    plain = name.removesuffix(":latest")
    known = _MODELS.get(plain)
    if known is None:
        return RemoteModel(plain, dims or 0, _UNKNOWN_TOKENS)
    if dims is None or dims == known.dims:
        return known
    return replace(known, dims=dims, shortened=True)
