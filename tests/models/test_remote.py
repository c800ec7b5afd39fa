"""Embedders on servers: each wire format, batches, what is refused, and who may stand in for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.errors import EndpointError, ModelError, SettingsError
from perdure.models.providers import PROVIDERS, connect
from perdure.models.remote import FAILURES, REST_SECONDS, FailoverEmbedder, RemoteEmbedder
from tests.faulty import FailingEmbedder, HangingEmbedder
from tests.loopback import Loopback, Reply, Request, loopback

KEYS = {name: provider.key.variable for name, provider in PROVIDERS.items() if provider.key}
KNOWN = {"openai": 1536, "gemini": 3072, "voyage": 1024, "mistral": 1024, "ollama": 768}
MODELS = {
    "openai": "text-embedding-3-small",
    "gemini": "gemini-embedding-001",
    "voyage": "voyage-4-large",
    "mistral": "mistral-embed",
    "ollama": "nomic-embed-text",
}


def texts_of(request: Request) -> list[str]:
    """Return the texts of a request in any of the three forms."""
    if "requests" in request.body:
        return [each["content"]["parts"][0]["text"] for each in request.body["requests"]]
    texts: list[str] = request.body["input"]
    return texts


def vector(text: str, dims: int) -> list[float]:
    """Return a vector of any length that depends on the text alone."""
    return [float(value) for value in 3 * HashEmbedder(dims).embed([text])[0]]


def answer(request: Request, rows: list[list[float]]) -> Reply:
    """Answer in the form in which was asked."""
    if request.path.endswith(":batchEmbedContents"):
        return Reply({"embeddings": [{"values": row} for row in rows]})
    if request.path.endswith("/api/embed"):
        return Reply({"model": request.body["model"], "embeddings": rows, "prompt_eval_count": 3})
    entries = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return Reply({"object": "list", "data": entries[::-1], "model": "m", "usage": {"total_tokens": 3}})


def speaking(dims: int) -> Callable[[Request], Reply]:
    return lambda request: answer(request, [vector(text, dims) for text in texts_of(request)])


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(speaking(8)) as running:
        yield running


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS.values():
        monkeypatch.setenv(variable, "key-of-" + variable.lower())


def small(server: Loopback, name: str = "openai-compatible", **given: Any) -> RemoteEmbedder:
    return connect(name, **{"model": "m", "dims": 8, "url": server.url, **given})


@pytest.mark.parametrize("name", KNOWN)
def test_each_provider_speaks_its_form(server: Loopback, name: str) -> None:
    server.answer = speaking(KNOWN[name])
    embedder = connect(name, url=server.url)
    assert server.connections == 0
    texts = ["The heron sleeps", "", "Der Reiher schläft 🦢"]
    vectors = embedder.embed(texts)
    assert vectors.shape == (3, KNOWN[name])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    prefix = embedder.identity.document_prefix if name == "ollama" else ""
    expected = np.array(vector(prefix + texts[0], KNOWN[name]))
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), rtol=1e-5)
    assert embedder.identity.model == MODELS[name]
    assert all(texts_of(server.requests[0]))


@pytest.mark.parametrize(
    ("name", "path", "header"),
    [
        ("openai", "/embeddings", "Authorization"),
        ("gemini", "/models/gemini-embedding-001:batchEmbedContents", "x-goog-api-key"),
        ("voyage", "/embeddings", "Authorization"),
        ("mistral", "/embeddings", "Authorization"),
        ("ollama", "/api/embed", None),
    ],
)
def test_path_and_key(server: Loopback, name: str, path: str, header: str | None) -> None:
    server.answer = speaking(KNOWN[name])
    connect(name, url=server.url).embed(["x"])
    [request] = server.requests
    assert request.path == path
    sent = {field: value for field, value in request.headers.items() if "key-of-" in value}
    prefix = "" if header == "x-goog-api-key" else "Bearer "
    assert sent == ({header: prefix + "key-of-" + KEYS[name].lower()} if header else {})


@pytest.mark.parametrize("shown", range(4, 24, 3))
def test_a_secret_is_taken_out_before_a_long_text_is_cut(server: Loopback, shown: int) -> None:
    secret = "sk-proj-9fK2mQx7Lr4TnB8vWc3Yz6Hd"
    long = "The heron sleeps. " * 200
    small(server).embed([f"{long[: 2047 - shown]} {secret} {long}"])
    [sent] = texts_of(server.requests[0])
    assert len(sent) <= 2048
    assert secret[:shown] not in sent


def test_google_is_another_name_of_gemini(server: Loopback) -> None:
    server.answer = speaking(KNOWN["gemini"])
    theirs, ours = (connect(name, url=server.url) for name in ("google", "gemini"))
    np.testing.assert_array_equal(theirs.embed(["x"]), ours.embed(["x"]))
    assert theirs.identity == ours.identity, "a store can go from one name to the other"
    by_google, by_gemini = server.requests
    assert (by_google.path, by_google.body) == (by_gemini.path, by_gemini.body)
    assert by_google.headers["x-goog-api-key"] == "key-of-gemini_api_key"


def test_queries_are_told_from_documents(server: Loopback) -> None:
    for name in ("gemini", "voyage", "ollama"):
        server.answer = speaking(KNOWN[name])
        embedder = connect(name, url=server.url)
        embedder.embed(["x"], query=True)
        embedder.embed(["x"])
    bodies = [request.body for request in server.requests]
    assert [body["requests"][0]["taskType"] for body in bodies[:2]] == ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"]
    assert [body["input_type"] for body in bodies[2:4]] == ["query", "document"]
    assert [body["input"] for body in bodies[4:]] == [["search_query: x"], ["search_document: x"]]


@pytest.mark.parametrize(
    ("name", "field"), [("openai", "dimensions"), ("gemini", "outputDimensionality"), ("voyage", "output_dimension")]
)
def test_vectors_can_be_shortened(server: Loopback, name: str, field: str) -> None:
    server.answer = speaking(256)
    embedder = connect(name, url=server.url, dims=256)
    assert embedder.embed(["x"]).shape == (1, 256)
    body = server.requests[0].body
    assert (body["requests"][0] if name == "gemini" else body)[field] == 256
    assert embedder.identity != connect(name, url=server.url).identity


def test_the_length_of_an_unknown_model_is_asked_once(server: Loopback) -> None:
    embedder = connect("openai-compatible", model="my-model", url=server.url)
    assert embedder.identity.dims == 8
    assert len(server.requests) == 1


def test_many_texts_go_in_batches_and_come_back_in_order(server: Loopback) -> None:
    texts = [f"text number {number}" for number in range(300)]
    embedder = small(server)
    vectors = embedder.embed(texts)
    assert [len(texts_of(request)) for request in server.requests] == [128, 128, 44]
    assert [text for request in server.requests for text in texts_of(request)] == texts
    np.testing.assert_array_equal(vectors[299], embedder.embed([texts[299]])[0])
    assert embedder.embed([]).shape == (0, 8)


def test_no_request_is_larger_than_the_provider_takes(server: Loopback) -> None:
    server.answer = speaking(1024)
    connect("mistral", url=server.url).embed(["é" * 20_000] * 5)
    sizes = [sum(len(text.encode()) for text in texts_of(request)) for request in server.requests]
    assert sum(len(texts_of(request)) for request in server.requests) == 5
    assert max(sizes) <= 16_384


def test_secrets_are_not_sent(server: Loopback) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwx1234"
    small(server).embed([f"The key is {secret}"], query=True)
    assert secret not in str(server.requests[0].body)


@pytest.mark.parametrize("name", KEYS)
def test_a_missing_key_is_named_and_nothing_is_sent(
    server: Loopback, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS[name])
    if name == "openai-compatible":
        assert small(server).embed(["x"]).shape == (1, 8)
        return
    with pytest.raises(ModelError, match=KEYS[name]):
        connect(name, url=server.url)
    assert server.connections == 0


def test_another_variable_can_hold_the_key(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER", "other-key")
    small(server, key_variable="OTHER").embed(["x"])
    assert server.requests[0].headers["Authorization"] == "Bearer other-key"


NAN = float("nan")


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"data": [{"index": 0, "embedding": [1.0] * 7}]}),
        Reply({"data": [{"index": 0, "embedding": []}]}),
        Reply({"data": []}),
        Reply({"data": [{"index": 0, "embedding": [1.0] * 8}] * 2}),
        Reply({"data": [{"index": 0, "embedding": [NAN] * 8}]}),
        Reply({"data": [{"index": 0, "embedding": [1e400] * 8}]}),
        Reply({"data": [{"index": 0, "embedding": ["one"] * 8}]}),
        Reply({"data": [{"index": 0, "embedding": "AAAA"}]}),
        Reply({"data": [{"embedding": [1.0] * 8}]}),
        Reply({"data": None}),
        Reply([]),
        Reply(None),
        Reply(b"not json"),
        Reply({"error": {"message": "Incorrect API key"}}, 401),
        Reply({"error": "overloaded"}, 500, {"Retry-After": "0"}),
    ],
)
def test_what_are_no_good_vectors_is_refused(server: Loopback, reply: Reply) -> None:
    embedder = small(server)
    server.answer = lambda request: reply
    with pytest.raises(ModelError):
        embedder.embed(["x"])


def test_an_answer_of_the_wrong_length_says_what_to_set(server: Loopback) -> None:
    with pytest.raises(ModelError, match=r"\[8\] dimensions, not 9.*embedder_dims"):
        small(server, dims=9).embed(["x"])


def test_it_goes_on_after_too_many_requests(server: Loopback) -> None:
    replies = [Reply({"error": "slow down"}, 429, {"Retry-After": "0"})]
    server.answer = lambda request: replies.pop() if replies else speaking(8)(request)
    assert small(server).embed(["x"]).shape == (1, 8)


def test_a_hanging_server_is_left(server: Loopback) -> None:
    embedder = small(server, timeout=0.2)
    server.hang = True
    with pytest.raises(EndpointError, match="in time"):
        embedder.embed(["x"])


def test_a_running_call_can_be_interrupted(server: Loopback) -> None:
    embedder = small(server, timeout=600)
    server.hang = True
    raised: list[ModelError] = []

    def embed() -> None:
        try:
            embedder.embed(["x"])
        except ModelError as error:
            raised.append(error)

    thread = threading.Thread(target=embed, daemon=True)
    thread.start()
    assert server.arrived.wait(30)
    embedder.interrupt()
    thread.join(30)
    assert "interrupted" in str(raised[0])


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("nobody", {}, "known providers: openai"),
        ("openai-compatible", {"model": "m"}, "embedder_endpoint"),
        ("openai-compatible", {"url": "http://127.0.0.1:1"}, "embedder_model"),
        ("ollama", {"url": "127.0.0.1:11434"}, "address"),
    ],
)
def test_what_is_missing_is_named(name: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        connect(name, **given)


def test_one_model_has_one_identity_wherever_it_runs(server: Loopback) -> None:
    local = connect("ollama", model="nomic-embed-text:latest", url=server.url)
    assert local.identity == connect("openai-compatible", model="nomic-embed-text", url=server.url).identity
    # Voyage's input types change the vectors.
    assert connect("voyage").identity != connect("openai-compatible", model="voyage-3", url=server.url).identity


def test_another_server_of_the_same_model_stands_in(server: Loopback) -> None:
    with loopback(lambda request: Reply(None, 401)) as broken:
        chain = FailoverEmbedder([small(broken), small(server)])
        vectors = chain.embed(["x"])
        np.testing.assert_array_equal(vectors, small(server).embed(["x"]))
        assert len(broken.requests) == 1


def test_one_that_fails_again_and_again_rests() -> None:
    class Counting(FailingEmbedder):
        calls = 0

        def embed(self, texts: Any, *, query: bool = False) -> Any:
            self.calls += 1
            return super().embed(texts, query=query)

    time = [0.0]
    failing = Counting()
    chain = FailoverEmbedder([failing, HashEmbedder()], now=lambda: time[0])
    for _ in range(FAILURES + 5):
        chain.embed(["x"])
    assert failing.calls == FAILURES
    time[0] = REST_SECONDS
    chain.embed(["x"])
    assert failing.calls == FAILURES + 1


def test_when_all_fail_each_reason_is_told() -> None:
    chain = FailoverEmbedder([FailingEmbedder(), FailingEmbedder()])
    for _ in range(FAILURES + 1):
        with pytest.raises(ModelError, match=r"as it was made to; .* as it was made to"):
            chain.embed(["x"])


def test_other_vectors_never_stand_in() -> None:
    others: list[Embedder] = [HashEmbedder(8), HashEmbedder(16)]
    with pytest.raises(SettingsError, match="cannot replace"):
        FailoverEmbedder(others)


def test_an_interrupted_call_asks_nobody_else() -> None:
    hanging = HangingEmbedder(threading.Event())
    chain = FailoverEmbedder([hanging, HashEmbedder()])
    raised: list[ModelError] = []

    def embed() -> None:
        try:
            chain.embed(["x"])
        except ModelError as error:
            raised.append(error)

    thread = threading.Thread(target=embed, daemon=True)
    thread.start()
    assert hanging.started.wait(30)
    chain.interrupt()
    thread.join(30)
    assert "interrupted" in str(raised[0])
