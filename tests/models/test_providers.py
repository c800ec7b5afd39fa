"""Model servers by settings: what is used when, what status says, and that nothing is connected to unasked."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.embed.base import Embedder
from perdure.embed.catalogue import RECALL
from perdure.embed.deterministic import HashEmbedder
from perdure.engine.composing import BUILTINS, REMOTE, embedder_factory
from perdure.engine.extensions import ExtensionManager
from perdure.engine.model import Model, Recipes
from perdure.engine.settings import Settings
from perdure.errors import ModelError, SettingsError
from perdure.hooks.types import TurnContext
from perdure.index.reembed import Reembedder
from perdure.index.vector_index import ExactIndex
from perdure.recall.receipt import Receipt
from perdure.store.sql import run
from perdure.store.store import Store
from tests.kit import OpenMemory
from tests.loopback import Loopback, Reply, Request, chat, loopback

EXTENSIONS = ExtensionManager.load(disabled=(), builtins=BUILTINS)
FACT = "The heron car is parked in the yard"
QUERY = "Which automobile belongs to me?"
WORDINGS = '{"wordings": ["The heron car is parked"]}'
DIMS = 32


def vectors(request: Request) -> Reply:
    rows = HashEmbedder(DIMS).embed(request.body["input"]).tolist()
    return Reply({"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]})


def either(request: Request) -> Reply:
    """Answer as a server that has a model for chats and one for vectors."""
    return chat(WORDINGS, 120) if request.path.endswith("/chat/completions") else vectors(request)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(either) as running:
        yield running


def made(**given: Any) -> Embedder:
    factory: Callable[[], Embedder] | None = embedder_factory(Settings.load(given, environ={}), EXTENSIONS)
    assert factory is not None
    return factory()


def llm(server: Loopback, **given: Any) -> dict[str, Any]:
    return {"llm_endpoint": f"{server.url}/v1", "llm_model": "m", "embedder": "none", **given}


def compatible(server: Loopback, **given: Any) -> dict[str, Any]:
    return {"embedder": "openai-compatible", "embedder_endpoint": server.url, "embedder_model": "m", **given}


def test_the_registered_names_are_those_of_the_providers() -> None:
    from perdure.models.providers import PROVIDERS

    assert tuple(PROVIDERS) == REMOTE
    assert set(REMOTE) <= set(EXTENSIONS.embedders)


def test_without_configuration_no_socket_is_opened(tmp_path: Path) -> None:
    program = """
import sys
seen = []
# The network alone: the worker process is started over a socket pair of its own.
sys.addaudithook(lambda event, values: seen.append((event, values[-1])) if event in
    ("socket.connect", "socket.getaddrinfo", "socket.sendto") else None)
from perdure import Memory
with Memory.open() as memory:
    memory.ready()
    memory.store("The heron car is parked in the yard")
    assert memory.recall("Where is the heron car parked?") is not None
    assert memory.recall("Where is the heron car parked?", expand=True) is not None
    memory.settle()
assert "http.client" not in sys.modules, "the way out is not even loaded"
assert seen == [], seen
"""
    environment = os.environ | {
        "PERDURE_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "sk-of-somebody-else", "GEMINI_API_KEY": "x",
    }  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=90
    )
    assert result.returncode == 0, result.stderr


def test_a_search_is_asked_in_other_words_and_a_turn_is_not(server: Loopback, open_memory: OpenMemory) -> None:
    memory = open_memory(**llm(server))
    memory.store(FACT)
    assert memory.turns.before(QUERY, TurnContext(session_id="s")) is None
    assert memory.recall(QUERY, expand=False) is None
    assert server.connections == 0
    receipts: list[Receipt] = []
    recall = memory.recall(QUERY, receipt_to=receipts.append)
    assert recall is not None
    assert recall.items[0].text == FACT
    assert memory.why(receipts[0]).expansion["wordings"] == ["The heron car is parked"]
    assert memory.status().llm == "m: 120 of 100000 tokens used today (nano 120)"


def test_a_turn_is_asked_in_other_words_if_set(server: Loopback, open_memory: OpenMemory) -> None:
    memory = open_memory(**llm(server, llm={"expansion": "turn"}, recall_deadline_ms=60_000))
    memory.store(FACT)
    recall = memory.turns.before(QUERY, TurnContext(session_id="s"))
    assert recall is not None
    assert FACT in recall.block


def test_a_server_that_fails_leaves_the_search_as_it_is(server: Loopback, open_memory: OpenMemory) -> None:
    server.answer = lambda request: Reply({"error": "no"}, 401)
    memory = open_memory(**llm(server))
    memory.store(FACT)
    assert memory.recall(QUERY) is None
    assert memory.recall("Where is the heron car parked?") is not None


def test_the_key_is_neither_kept_nor_logged(
    server: Loopback, open_memory: OpenMemory, home: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    secret = "plain-key-0123456789"
    monkeypatch.setenv("MY_KEY", secret)
    memory = open_memory(**llm(server, llm_key_env="MY_KEY"))
    memory.store(FACT)
    assert memory.recall(QUERY) is not None
    assert server.requests[0].headers["Authorization"] == f"Bearer {secret}"
    assert secret not in str(memory.status().to_dict())
    memory.close()
    assert secret not in caplog.text
    assert not any(secret.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_budget_that_is_used_up_asks_nobody(server: Loopback, open_memory: OpenMemory) -> None:
    memory = open_memory(**llm(server, llm={"daily_tokens": 100}))
    memory.store(FACT)
    receipts: list[Receipt] = []
    assert memory.recall(QUERY, receipt_to=receipts.append) is None
    assert receipts[0].expansion.state == "TokenBudgetError"
    assert server.connections == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"llm_endpoint": "http://127.0.0.1:1/v1"}, "llm_model"),
        ({"llm_endpoint": "localhost", "llm_model": "m"}, "address"),
    ],
)
def test_half_a_configuration_is_refused(home: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Memory.open(home, **given)


def test_status_says_that_there_is_no_language_model(open_memory: OpenMemory) -> None:
    assert open_memory().status().llm.startswith("off")


def test_a_store_is_embedded_by_a_server(server: Loopback, open_memory: OpenMemory, home: Path) -> None:
    memory = open_memory(**compatible(server))
    assert memory.status().model == "ready: m"
    memory.store(FACT)
    store = Store(home)
    with store.database.read() as connection:
        assert run(connection, "SELECT count(*) FROM vectors") == [(1,)]
    store.close()
    assert memory.recall("Where is the heron car parked?") is not None


def test_without_its_key_a_provider_is_not_used_and_status_names_the_variable(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    memory = open_memory(embedder="openai")
    assert "OPENAI_API_KEY" in memory.status().model
    memory.store(FACT)
    assert memory.recall("Where is the heron car parked?") is not None


def test_auto_takes_the_local_model_first(server: Loopback) -> None:
    embedder = made(embedder_fallbacks=[f"openai-compatible={server.url}"], embedder_model="m")
    assert embedder.identity == RECALL.identity
    assert server.connections == 0


def test_auto_takes_what_is_set_where_there_is_no_local_model(server: Loopback, tmp_path: Path) -> None:
    missing = tmp_path / "gone.onnx"
    with pytest.raises(ModelError, match=r"gone\.onnx"):
        made(model_path=missing)
    embedder = made(model_path=missing, embedder_model="m", embedder_fallbacks=[f"openai-compatible={server.url}"])
    assert embedder.identity.model == "m"
    assert embedder.embed(["x"]).shape == (1, DIMS)


def test_a_fallback_of_the_same_model_stands_in(server: Loopback, caplog: pytest.LogCaptureFixture) -> None:
    with loopback(lambda request: Reply(None, 401)) as broken:
        embedder = made(
            **compatible(broken, embedder_dims=DIMS, embedder_fallbacks=[f"openai-compatible={server.url}"])
        )
        assert embedder.embed(["x"]).shape == (1, DIMS)
        # Here the first one fails while it is made: it is asked for the length of its vectors.
        embedder = made(**compatible(broken, embedder_fallbacks=[f"openai-compatible={server.url}"]))
        assert embedder.embed(["x"]).shape == (1, DIMS)
    assert "falling back to" in caplog.text


def test_a_fallback_of_another_model_is_refused(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOYAGE_API_KEY", "x")
    with pytest.raises(SettingsError, match="cannot replace"):
        made(**compatible(server, embedder_model="voyage-3", embedder_dims=1024, embedder_fallbacks=["voyage"]))


def test_a_fallback_that_nobody_knows_is_refused(server: Loopback) -> None:
    with pytest.raises(SettingsError, match="not an embedding provider"):
        made(**compatible(server, embedder_fallbacks=["nobody"]))


class Opened:
    """A model on a store that asks a server again at once."""

    def __init__(self, store: Store, server: Loopback, retry: float, **given: Any) -> None:
        settings = Settings.load(compatible(server, **given), environ={})
        self.recipes = Recipes(settings, EXTENSIONS)
        self.model = Model(
            store, embedder_factory(settings, EXTENSIONS),
            lambda space: ExactIndex(store.database, space.id, space.dims), None, lambda: None,
            recipes=self.recipes, retry=retry,
        )  # fmt: skip
        self.model.start()
        self.model.wait(30)


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = Store(home)
    yield opened
    opened.close()


@pytest.mark.parametrize("dims", [None, DIMS])
def test_a_server_that_was_down_at_the_start_is_asked_again(server: Loopback, store: Store, dims: int | None) -> None:
    server.answer = lambda request: Reply(None, 404)
    opened = Opened(store, server, retry=0.0, embedder_dims=dims)
    assert store.space() is None, "nothing binds a store to a model that never answered"
    server.answer = vectors
    patience = threading.Event()
    for _ in range(600):
        if opened.model.leg() is not None:
            break
        patience.wait(0.05)
    assert opened.model.state == "ready: m"
    assert store.space() is not None
    asked = len(server.requests)
    assert opened.model.leg() is not None
    assert len(server.requests) == asked
    opened.model.close()


def test_a_server_that_is_down_is_not_asked_at_every_turn(server: Loopback, store: Store) -> None:
    server.answer = lambda request: Reply(None, 404)
    opened = Opened(store, server, retry=600.0)
    for _ in range(5):
        assert opened.model.leg() is None
        opened.model.wait(30)
    assert len(server.requests) == 1
    opened.model.close()


def test_a_space_remembers_its_server_and_another_process_uses_it(server: Loopback, store: Store) -> None:
    opened = Opened(store, server, retry=600.0)
    opened.model.close()
    space = store.space()
    assert space is not None
    assert space.description["settings"]["embedder_endpoint"] == server.url
    others = Recipes(Settings.load({"embedder": "hash"}, environ={}), EXTENSIONS)
    embedder = others.embedder(space)
    assert embedder is not None
    assert embedder.embed(["x"]).shape == (1, DIMS)
    assert Reembedder(store, others.embedder).step() is False
