"""`perdure mcp`, spoken to by the official client over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from perdure.api.memory import Memory
from perdure.errors import ExtensionError
from perdure.hosts.extras import need
from perdure.hosts.mcp.desk import Desk
from perdure.hosts.mcp.server import MemoryServer
from tests.plugin.conftest import kept

ROOT = Path(__file__).resolve().parents[2]
FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"


Work = Callable[[Client], Awaitable[Any]]


def over_stdio(home: Path, work: Work, mode: str) -> Any:
    """Start `perdure mcp`, have a conversation with it, and return what that returns."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "perdure", "mcp", "--home", str(home)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PERDURE_EMBEDDER": "hash"},
        cwd=str(home.parent),
    )

    async def conversation() -> Any:
        async with Client(stdio_client(parameters), mode=mode) as client:
            return await work(client)

    return asyncio.run(conversation())


def talk(home: Path, work: Work, agent: str | None = None, workspace: Path | None = None) -> Any:
    """Have a conversation with a server in this process, and return what that returns."""

    async def conversation() -> Any:
        server = MemoryServer(lambda: Desk(home, agent=agent, user=None, workspace=workspace))
        try:
            async with Client(server.server()) as client:
                return await work(client)
        finally:
            await server.close()

    return asyncio.run(conversation())


@pytest.fixture(autouse=True)
def _quick_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_EMBEDDER", "hash")


def test_what_is_stored_in_one_connection_is_recalled_in_the_next(home: Path) -> None:
    async def store(client: Client) -> None:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"memory_store", "memory_recall", "memory_forget", "memory_lookup"} <= set(names)
        assert len(set(names)) == len(names)
        stored = await client.call_tool("memory_store", {"text": FACT})
        assert not stored.is_error

    async def recall(client: Client) -> Any:
        return await client.call_tool("memory_recall", {"query": QUESTION})

    # Clients of before and after the change of the handshake in 2026.
    over_stdio(home, store, "legacy")
    found = over_stdio(home, recall, "auto")
    assert [memory["text"] for memory in found.structured_content["memories"]] == [FACT]
    assert "heron" in found.content[0].text


def test_tools_that_change_nothing_say_so(home: Path) -> None:
    async def hints(client: Client) -> dict[str, Any]:
        return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    found = talk(home, hints)
    assert found["memory_recall"].read_only_hint
    assert found["memory_forget"].destructive_hint
    assert not found["memory_store"].read_only_hint
    assert not found["memory_store"].destructive_hint


def test_a_wrong_call_is_told_to_the_model_and_the_server_goes_on(home: Path) -> None:
    async def work(client: Client) -> list[Any]:
        wrong = await client.call_tool("memory_store", {"txt": FACT})
        unknown = await client.call_tool("memory_delete_all", {})
        return [wrong, unknown, await client.call_tool("memory_store", {"text": FACT})]

    wrong, unknown, right = talk(home, work)
    assert wrong.is_error
    assert unknown.is_error
    assert "memory_recall" in unknown.content[0].text
    assert not right.is_error
    assert kept(home) == [FACT]


def test_facts_and_files_are_resources(home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("# Notes\n\nThe office is in Linz.\n")
    (workspace / "memory" / "a note.md").write_text("password = hunter2hunter2\n")
    with Memory.open(home, embedder="hash") as memory:
        fact = memory.store(FACT)

    async def work(client: Client) -> dict[str, str]:
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        assert {template.uri_template for template in templates} == {
            "perdure://facts/{id}",
            "perdure://files/{+path}",
        }
        texts = {}
        for uri in [*uris, f"perdure://facts/{fact.id[:8]}"]:
            [contents] = (await client.read_resource(uri)).contents
            texts[uri] = contents.text  # type: ignore[union-attr]
        return texts

    texts = talk(home, work, workspace=workspace)
    assert set(texts) == {
        "perdure://facts",
        f"perdure://facts/{fact.id[:8]}",
        "perdure://files/MEMORY.md",
        "perdure://files/memory/a%20note.md",
    }
    assert [each["text"] for each in json.loads(texts["perdure://facts"])["memories"]] == [FACT]
    assert json.loads(texts[f"perdure://facts/{fact.id[:8]}"])["id"] == fact.id
    assert "Linz" in texts["perdure://files/MEMORY.md"]
    assert "hunter2hunter2" not in texts["perdure://files/memory/a%20note.md"]


@pytest.mark.parametrize(
    "uri", ["perdure://facts/00000000", "perdure://files/../secret.md", "perdure://files/memory/none.md", "file:///etc"]
)
def test_what_is_no_resource_is_refused(home: Path, uri: str) -> None:
    (home.parent / "secret.md").write_text("not for you")

    async def work(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.read_resource(uri)

    talk(home, work, workspace=home.parent)


def test_another_agents_memories_are_no_resources(home: Path) -> None:
    with Memory.open(home, embedder="hash", agent="other") as memory:
        fact = memory.store(FACT)

    async def work(client: Client) -> str:
        with pytest.raises(MCPError):
            await client.read_resource(f"perdure://facts/{fact.id}")
        [contents] = (await client.read_resource("perdure://facts")).contents
        return str(contents.text)  # type: ignore[union-attr]

    assert FACT not in talk(home, work, agent="mine")


def test_the_prompt_asks_with_what_memory_holds(home: Path) -> None:
    with Memory.open(home, embedder="hash") as memory:
        memory.store(FACT)

    async def work(client: Client) -> list[str]:
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["recall"]
        with pytest.raises(MCPError):
            await client.get_prompt("recall", {})
        asked = [await client.get_prompt("recall", {"question": text}) for text in (QUESTION, "Is it raining?")]
        return [each.messages[0].content.text for each in asked]  # type: ignore[union-attr]

    known, unknown = talk(home, work)
    assert FACT in known
    assert known.endswith(QUESTION)
    assert unknown == "Is it raining?"


def test_a_store_that_cannot_be_opened_is_an_answer_and_not_the_end(home: Path) -> None:
    home.write_text("a file stands where the folder should be")

    async def work(client: Client) -> Any:
        assert (await client.list_tools()).tools
        with pytest.raises(MCPError):
            await client.read_resource("perdure://facts")
        return await client.call_tool("memory_store", {"text": FACT})

    answer = over_stdio(home, work, "auto")
    assert answer.is_error
    assert str(home) in answer.content[0].text


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(ExtensionError, match=r"perdure\[mcp\]"):
        need("no_such_module_anywhere", "mcp")
