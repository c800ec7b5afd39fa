"""`perdure mcp`, spoken to by the official client over stdin and stdout."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from perdure.api.memory import Memory
from perdure.engine.repository import project_of
from perdure.errors import ExtensionError
from perdure.extras import need
from perdure.hooks.types import TurnContext
from perdure.hosts.mcp.client import McpClient
from perdure.hosts.mcp.desk import Desk
from perdure.hosts.mcp.server import MemoryServer
from tests.kit import kept

ROOT = Path(__file__).resolve().parents[2]
FACT = "The staging database is called heron."
QUESTION = "What is the staging database called?"


Work = Callable[[Client], Awaitable[Any]]


def over_stdio(
    home: Path, work: Work, mode: str, *options: str, folder: Path | None = None, answer: Any = None, **variables: str
) -> Any:
    """Start `perdure mcp` in a folder, have a conversation with it, and return what that returns."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "perdure", "mcp", "--home", str(home), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PERDURE_EMBEDDER": "hash", **variables},
        cwd=str(folder or home.parent),
    )

    async def conversation() -> Any:
        async with Client(stdio_client(parameters), mode=mode, elicitation_callback=answer) as client:
            return await work(client)

    return asyncio.run(conversation())


def talk(
    home: Path, work: Work, agent: str | None = None, workspace: Path | None = None, mode: str = "auto", **given: Any
) -> Any:
    """Have a conversation with a server in this process, and return what that returns."""

    async def conversation() -> Any:
        known = McpClient(agent=agent, workspace=str(workspace) if workspace else None)
        server = MemoryServer(lambda: Desk(home, known))
        try:
            async with Client(server.server(), mode=mode, **given) as client:
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
        assert {"memory_store", "memory_search", "memory_forget", "memory_list"} <= set(names)
        assert len(set(names)) == len(names)
        stored = await client.call_tool("memory_store", {"text": FACT})
        assert not stored.is_error

    async def recall(client: Client) -> Any:
        return await client.call_tool("memory_search", {"query": QUESTION})

    # Clients of before and after the change of the handshake in 2026.
    over_stdio(home, store, "legacy")
    found = over_stdio(home, recall, "auto")
    assert [memory["text"] for memory in found.structured_content["memories"]] == [FACT]
    assert "heron" in found.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_server_asks_and_goes_on_while_it_waits(home: Path, mode: str) -> None:
    with Memory.open(home, embedder="hash") as memory:
        boat = memory.store("The boat is called Albatross.").id
    searched = asyncio.Event()
    asked = []

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        await searched.wait()
        return types.ElicitResult(action="accept")

    async def work(client: Client) -> Any:
        call = client.call_tool("memory_update", {"id": boat, "text": "The boat is called Heron."})
        update = asyncio.create_task(call)
        found = await client.call_tool("memory_search", {"query": "What is the boat called?"})
        assert "Albatross" in found.content[0].text  # type: ignore[union-attr]
        searched.set()
        return await update

    assert not over_stdio(home, work, mode, answer=accept).is_error
    [message] = asked
    assert message == "Replace this memory?\n\nNow: The boat is called Albatross.\nNew: The boat is called Heron."
    with Memory.open(home, embedder="hash") as memory:
        assert [fact.text for fact in memory.admin.list()] == ["The boat is called Heron."]


def test_tools_that_change_nothing_say_so(home: Path) -> None:
    async def hints(client: Client) -> dict[str, Any]:
        return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    found = talk(home, hints)
    assert found["memory_search"].read_only_hint
    assert found["memory_forget"].destructive_hint
    assert not found["memory_store"].read_only_hint
    assert not found["memory_store"].destructive_hint


def test_the_listing_is_short_enough_to_be_in_every_request(home: Path) -> None:
    async def listing(client: Client) -> str:
        return (await client.list_tools()).model_dump_json(by_alias=True, exclude_none=True)

    size = len(talk(home, listing).encode())
    print(f"tools/list: {size} bytes")  # noqa: T201 - whoever adds a tool wants to know
    assert size <= 6_480


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_runs_every_tool_and_gets_what_it_was_told_to_expect(home: Path, tmp_path: Path, mode: str) -> None:
    """The client itself checks each answer against the output schema of its tool."""
    (tmp_path / "MEMORY.md").write_text("# Notes\n\nThe office is in Linz.\n")
    with Memory.open(home, embedder="hash") as memory:
        said = {"role": "user", "content": "What a cold wind there is in the harbour!"}
        memory.turns.after([said], True, TurnContext(session_id="s1", now=1_790_000_000.0))
        memory.settle()

    async def work(client: Client) -> None:
        async def call(name: str, **values: Any) -> dict[str, Any]:
            result = await client.call_tool(name, values)
            assert not result.is_error, result.content
            return dict(result.structured_content or {})

        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert all(tool.title and tool.description and tool.output_schema for tool in tools.values())
        boat = await call("memory_store", text="The boat is called Albatross.", entity="boat", key="name", tags=["sea"])
        dinghy = await call("memory_store", text="The dinghy is moored at the pier.", decay_class="short")
        for values in ({}, {"tag": "sea"}, {"entity": "boat"}, {"in": "all"}):
            [found] = (await call("memory_search", query="What is the boat called?", limit=1, **values))["memories"]
            assert found["id"] == boat["id"]
            assert dt.datetime.fromisoformat(found["said_at"]).tzinfo
        [passage] = (await call("memory_search", query="Where is the office?", **{"in": "files"}))["results"]
        turns = (await call("memory_search", query="cold wind in the harbour", **{"in": "conversations"}))["results"]
        assert [dt.datetime.fromisoformat(turn["at"]).year for turn in turns] == [2026]
        listed = (await call("memory_list"))["memories"]
        assert [each["id"] for each in listed] == [dinghy["id"], boat["id"]]
        [slot] = (await call("memory_list", entity="boat", key="name", category=listed[1]["category"]))["memories"]
        assert slot["id"] == boat["id"]
        assert (await call("memory_list", as_of="2020-01-01"))["memories"] == []
        [whole] = (await call("memory_get", id=boat["id"][:8]))["memories"]
        assert whole["text"] == "The boat is called Albatross."
        assert "Linz" in (await call("memory_get", path=passage["path"]))["text"]
        newer = await call("memory_update", id=boat["id"], text="The boat is called Heron.")
        await call("memory_link", source=newer["id"], target=dinghy["id"], type="PART_OF")
        await client.get_prompt("recall", {"question": "What is the boat called?"})
        assert newer["id"] in (await call("memory_why"))["shown"]
        await call("memory_why", id=dinghy["id"])
        await call("memory_checkpoint", intent="Sail.", state="Ready.")
        await call("memory_reflect", days=30)
        await call("memory_forget", id=dinghy["id"])
        called = {"search", "list", "get", "store", "update", "link", "why", "checkpoint", "reflect", "forget"}
        assert tools.keys() == {f"memory_{name}" for name in called} | {"memory_prune"}

    talk(home, work, workspace=tmp_path, mode=mode)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_what_expired_is_removed_if_the_user_agrees(home: Path, mode: str) -> None:
    asked = []

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept")

    async def prune(client: Client) -> Any:
        return await client.call_tool("memory_prune", {})

    assert talk(home, prune, mode=mode).is_error
    done = talk(home, prune, mode=mode, elicitation_callback=accept)
    # Some clients show their model these values alone.
    assert done.structured_content == {"expired": 0, "removed": 0, "text": done.content[0].text}
    assert len(asked) == 1


def test_what_belongs_to_a_repository_stays_in_it(home: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("ours", "theirs")]
    for folder in folders:
        (folder / ".git").mkdir(parents=True)

    async def store(client: Client) -> None:
        assert not (await client.call_tool("memory_store", {"text": FACT, "scope": "project"})).is_error

    async def recall(client: Client) -> list[str]:
        found = await client.call_tool("memory_search", {"query": QUESTION})
        return [memory["text"] for memory in found.structured_content["memories"]]

    over_stdio(home, store, "auto", "--host", "some-client", folder=folders[0])
    assert over_stdio(home, recall, "auto", folder=folders[0]) == [FACT]
    assert over_stdio(home, recall, "auto", folder=folders[1]) == []
    assert over_stdio(home, recall, "auto", folder=folders[1], CLAUDE_PROJECT_DIR=str(folders[0])) == [FACT]
    with Memory.open(home, embedder="hash", scopes=[project_of(folders[0]) or ""]) as memory:
        # The background may have added the memory's vector meanwhile, in its own name.
        added = [change for change in memory.admin.changes() if change.action == "add"]
        assert [change.host for change in added] == ["some-client"]


def test_a_wrong_call_is_told_to_the_model_and_the_server_goes_on(home: Path) -> None:
    async def work(client: Client) -> list[Any]:
        wrong = await client.call_tool("memory_store", {"txt": FACT})
        unknown = await client.call_tool("memory_delete_all", {})
        return [wrong, unknown, await client.call_tool("memory_store", {"text": FACT})]

    wrong, unknown, right = talk(home, work)
    assert wrong.is_error
    assert unknown.is_error
    assert "memory_search" in unknown.content[0].text
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


def request(number: object, name: str, arguments: object) -> bytes:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def test_each_call_is_answered_whatever_stands_in_its_line(home: Path) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    lines = [
        b"\xef\xbb\xbf" + json.dumps(begin).encode(),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b"noise", b"", b"[" * 9_000, b'{"id": NaN}',
        request(1, "memory_store", {"text": "The cat is called \ud83d Mia."}),
        request(2, "memory_store", {"text": "The dog is called Bruno."})[:-9],
        b'{"jsonrpc": "2.0", "id": 3, "params": []}',
        request("four", "nothing \udc00", {"\ud83d": 1}),
        request(5, "memory_store", {"text": "The bird is called Pip.", "tags": '["small"]', "importance": None}),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "perdure", "mcp", "--home", str(home)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"".join(line + b"\n" for line in lines))
        server.stdin.flush()
        answers = {answer["id"]: answer for answer in (json.loads(server.stdout.readline()) for _ in range(6))}
        server.stdin.close()
    assert set(answers) == {0, 1, 2, 3, "four", 5}
    assert [answers[number]["error"]["code"] for number in (2, 3)] == [-32700, -32600]
    assert not answers[1]["result"]["isError"]
    assert not answers[5]["result"]["isError"]
    assert sorted(kept(home)) == ["The bird is called Pip.", "The cat is called \ufffd Mia."]
