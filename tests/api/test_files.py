"""File memory as a user and a host have it: folders, conversations, searches, and what the prompt is told."""

from __future__ import annotations

import dataclasses
import os
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from perdure.api.files import Files
from perdure.api.memory import Memory
from perdure.clock import ManualClock
from perdure.engine.engine import Engine
from perdure.errors import InputError, ScopeError, UnsafePathError
from perdure.hooks.host import HookRunner
from perdure.hooks.types import Recall, TurnContext
from perdure.plugin.plugin import hookimpls_for
from perdure.store.sql import run
from tests.kit import OpenHost, OpenMemory, complaints, kept

TEXT = "The staging database is called heron."
QUESTION = "What is the staging database called?"
FILLER = "The weather was mild, and nothing else happened in the office that afternoon."


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(f"# Servers\n\n{TEXT}\n")
    return folder


@pytest.fixture
def memory(open_memory: OpenMemory, workspace: Path) -> Memory:
    return open_memory(workspace=workspace, watch=False)


def paths(memory: Memory, query: str, **values: Any) -> list[str]:
    return [result.path for result in memory.files.search(query, **values).results]


def said(*texts: str, **values: Any) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text, **values} for at, text in enumerate(texts)]


class TestFolders:
    def test_the_workspace_of_the_settings(self, memory: Memory) -> None:
        [result] = memory.files.search("staging database").results
        assert (result.citation, result.source) == ("MEMORY.md#L1-L3", "memory")
        reading = memory.files.read(str(result.citation))
        assert reading.text == f"# Servers\n\n{TEXT}"
        assert memory.files.read("MEMORY.md", 3, 1).text == TEXT

    def test_a_folder_that_another_process_adds_or_removes_counts_at_the_next_search(
        self, open_memory: OpenMemory, tmp_path: Path
    ) -> None:
        memory, other = open_memory(watch=False), open_memory(watch=False)
        folder = tmp_path / "notes"
        folder.mkdir()
        (folder / "a.md").write_text(TEXT)
        for _ in range(2):
            assert paths(memory, "staging database") == []
            other.files.add(folder, "extra")
            assert paths(memory, "staging database called heron") == ["notes/a.md"]
            assert other.files.remove(folder)

    def test_extra_paths(self, open_memory: OpenMemory, tmp_path: Path) -> None:
        notes = tmp_path / "notes"
        notes.mkdir()
        (notes / "herons.md").write_text(TEXT)
        single = tmp_path / "single.md"
        single.write_text("The gardener comes on Fridays.")
        memory = open_memory(extra_paths=[str(notes), str(single)])
        assert paths(memory, "staging database") == ["notes/herons.md"]
        assert paths(memory, "gardener") == ["single.md"]
        assert memory.files.read("single.md").text == "The gardener comes on Fridays."

    def test_folders_come_and_go(self, memory: Memory, tmp_path: Path) -> None:
        notes = tmp_path / "notes"
        notes.mkdir()
        (notes / "egret.md").write_text("The production database is called egret.")
        (notes / "egret.txt").write_text("An egret as plain text.")
        assert paths(memory, "egret") == []
        memory.files.add(notes, "extra")
        assert paths(memory, "egret") == ["notes/egret.md"]
        assert memory.files.remove(notes)
        assert not memory.files.remove(notes)
        assert paths(memory, "egret") == []
        assert (notes / "egret.md").exists()
        with pytest.raises(InputError, match="neither a folder nor"):
            memory.files.add(notes / "egret.txt", "extra")

    def test_what_is_written_is_found_at_once(self, memory: Memory, workspace: Path) -> None:
        for number in range(20):
            path = workspace / "memory" / f"note{number % 4}.md"
            path.write_text(f"The code of door {number} is kestrel{number}.")
            assert paths(memory, f"kestrel{number}")[0] == f"memory/note{number % 4}.md"
            found = memory.files.search("code door kestrel", min_score=0.0).results
            assert not any(f"kestrel{number - 4}." in result.snippet for result in found)
        path.unlink()
        assert path.relative_to(workspace).as_posix() not in paths(memory, "kestrel19", min_score=0.0)

    def test_reading_is_safe(self, memory: Memory, workspace: Path, tmp_path: Path) -> None:
        (tmp_path / "outside.md").write_text("secret")
        (workspace / "memory" / "link.md").symlink_to(tmp_path / "outside.md")
        for path in ("../outside.md", "memory/../../outside.md", "memory/link.md", str(tmp_path / "outside.md")):
            with pytest.raises(UnsafePathError):
                memory.files.read(path)
        with pytest.raises(InputError):
            memory.files.read("sessions/s.jsonl")
        assert memory.files.read("memory/none.md").missing

    def test_status_names_what_differs(self, memory: Memory, workspace: Path) -> None:
        before = memory.files.status()
        assert (before.added, before.files, before.generation, before.dirty) == (("MEMORY.md",), 0, 0, 1)
        (workspace / "memory" / "a.md").write_text("A gardener.")
        (workspace / "memory" / "b.md").write_text("A plumber.")
        memory.files.sync()
        memory.files.embed()
        clean = memory.files.status()
        assert (clean.dirty, clean.files, clean.chunks, clean.without_vector) == (0, 3, 3, 0)
        assert clean.generation > 0
        assert clean.last_synced is not None
        assert [(kind, scope) for kind, _, scope in clean.roots] == [("workspace", "user:owner")]
        (workspace / "memory" / "a.md").write_text("A gardener, and his dog.")
        (workspace / "memory" / "b.md").unlink()
        (workspace / "memory" / "c.md").write_text("A painter.")
        (workspace / "memory" / "d.md").symlink_to(workspace / "MEMORY.md")
        status = memory.files.status()
        assert (status.added, status.changed, status.removed) == (("memory/c.md",), ("memory/a.md",), ("memory/b.md",))
        assert status.skipped == {"memory/d.md": "link"}
        assert status.to_dict()["dirty"] == status.dirty == 3
        assert memory.files.search("painter").dirty == 0
        assert memory.files.status().dirty == 0

    def test_deep_status_reads_what_looks_the_same(self, memory: Memory, workspace: Path) -> None:
        path = workspace / "MEMORY.md"
        long_ago = 1_600_000_000
        os.utime(path, (long_ago, long_ago))
        memory.files.sync()
        path.write_text(path.read_text().replace("heron", "egret"))
        os.utime(path, (long_ago, long_ago))
        assert memory.files.status().dirty == 0
        assert memory.files.status(deep=True).changed == ("MEMORY.md",)

    def test_a_rebuild_and_new_vectors_change_no_answer(self, memory: Memory) -> None:
        seen: list[tuple[int, int]] = []
        before = memory.files.search(QUESTION)
        assert memory.files.sync(force=True, progress=lambda done, total: seen.append((done, total))).rebuilt
        assert seen[-1] == (1, 1)
        memory.files.embed()
        after = memory.files.search(QUESTION)
        assert [result.citation for result in after.results] == [result.citation for result in before.results]
        assert after.backend == "hybrid"

    @pytest.mark.parametrize("values", [{"max_results": 0}, {"min_score": 2.0}, {"sources": ["mails"]}])
    def test_what_is_out_of_bounds_is_refused(self, memory: Memory, values: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            memory.files.search("heron", **values)

    def test_no_source(self, open_memory: OpenMemory, workspace: Path) -> None:
        memory = open_memory(workspace=workspace, sources=[])
        assert memory.files.search("heron").disabled


class TestOtherNames:
    @pytest.fixture
    def memory(self, open_memory: OpenMemory, workspace: Path) -> Memory:
        # Without a model: vectors come behind the index, and change scores when they are there.
        memory = open_memory(workspace=workspace, watch=False, embedder="none")
        (workspace / "memory" / "ci.md").write_text("The runners of GitHub Actions stand in Oslo.\n")
        (workspace / "memory" / "bill.md").write_text("The invoice for GHA is due on Friday.\n")
        return memory

    def test_a_search_goes_by_every_name(self, memory: Memory) -> None:
        assert paths(memory, "GHA runners", min_score=0.6) == []
        memory.aliases.add("GitHub Actions", "GHA")
        assert paths(memory, "GHA runners", min_score=0.6) == ["memory/ci.md"]

    def test_what_has_the_name_that_was_asked_for_stays_as_certain(self, memory: Memory) -> None:
        def score() -> float:
            return next(each.score for each in memory.files.search("GHA invoice").results if "bill" in each.path)

        before = score()
        memory.aliases.add("General Housing Association", "GHA")
        assert score() == before

    def test_there_are_no_more_results_than_asked_for_and_none_twice(self, memory: Memory) -> None:
        memory.aliases.add("GitHub Actions", "GHA")
        found = paths(memory, "Oslo Friday GHA", min_score=0.0)
        assert sorted(found[:2]) == ["memory/bill.md", "memory/ci.md"]
        assert len(set(found)) == len(found)
        assert len(paths(memory, "Oslo Friday GHA", min_score=0.0, max_results=1)) == 1

    def test_names_of_another_user_are_not_used(self, open_memory: OpenMemory, memory: Memory) -> None:
        open_memory(user="eva").aliases.add("GitHub Actions", "GHA")
        assert paths(memory, "GHA runners", min_score=0.6) == []


class TestConversations:
    def test_by_speaker_and_time(self, memory: Memory) -> None:
        march = datetime.fromisoformat("2026-03-14T10:00:00+00:00").timestamp()
        messages = [
            {"role": "user", "name": "Karl", "content": "I bought a red bicycle today.", "timestamp": march},
            {"role": "user", "name": "Paula", "content": "I bought a blue boat today.", "timestamp": march + 60},
        ]
        assert memory.files.add_transcript(messages, "shopping") == 2
        assert memory.files.add_transcript(messages, "shopping") == 0
        result = memory.files.search("What did Karl buy? bought").results[0]
        assert (result.speaker, result.at, result.session) == ("Karl", march, "shopping")
        assert "bicycle" in result.snippet
        assert memory.files.search("What did Paula buy? bought").results[0].speaker == "Paula"
        assert {found.session for found in memory.files.search("14 March 2026 bought").results} == {"shopping"}
        assert paths(memory, "red bicycle", sources=["memory"]) == []

    def test_what_a_host_says_is_found_when_the_session_is_over(self, open_host: OpenHost) -> None:
        host, memory = open_host()
        memory.files.sync()
        host.turn("My bicycle has the frame number WX4417.", "I see.")
        assert memory.settle()
        assert paths(memory, "WX4417") == []
        host.new_session("session-2")
        assert memory.settle()
        [result] = [each for each in memory.files.search("WX4417").results if each.role == "user"]
        assert (result.session, result.source) == ("session-1", "sessions")
        assert result.snippet == "My bicycle has the frame number WX4417."

    def test_the_recalled_block_is_not_recorded(self, open_host: OpenHost) -> None:
        host, memory = open_host(keeps_block=True)
        memory.store(TEXT)
        assert TEXT in host.turn(QUESTION, "I have looked it up.").prompt_seen
        host.stop()
        reopened, again = open_host()
        again.settle()
        found = again.files.search("staging database called", min_score=0.1).results
        assert {result.snippet for result in found} == {QUESTION, "I have looked it up."}
        reopened.stop()

    @pytest.mark.skipif(os.name != "posix", reason="makes a link")
    def test_a_record_that_moves_to_another_disk_under_an_open_store_is_searched_there(
        self, open_memory: OpenMemory, tmp_path: Path, home: Path
    ) -> None:
        memory = open_memory(watch=False)
        memory.files.add_transcript(said("My bicycle has the number WX4417."), "s")
        [recorded] = (home / "transcripts").glob("*/*.jsonl")
        # First the folder of one scope, then that of all.
        for number, folder in enumerate((recorded.parent, recorded.parent.parent)):
            assert len(paths(memory, "WX4417")) == 1
            elsewhere = tmp_path / f"disk-{number}"
            folder.rename(elsewhere)
            memory.files.sync()
            assert paths(memory, "WX4417") == []
            folder.symlink_to(elsewhere)
        assert len(paths(memory, "WX4417")) == 1

    def test_a_host_that_clears_its_list_at_once_is_recorded(self, open_memory: OpenMemory) -> None:
        memory = open_memory(watch=False)
        context = TurnContext(session_id="s")
        for number in range(30):
            messages = said(f"My door number {number} has the code wren{number}.", "Noted.")
            memory.turns.after(messages, True, context)
            messages.clear()
        memory.turns.session_end(context)
        assert memory.settle()
        assert all(paths(memory, f"wren{number}") for number in range(30))

    def test_a_host_with_conversations_of_its_own_is_not_recorded(
        self, open_memory: OpenMemory, tmp_path: Path, home: Path
    ) -> None:
        memory = open_memory(watch=False)
        folder = tmp_path / "host-sessions"
        folder.mkdir()
        (folder / "abc.jsonl").write_text(
            '{"type":"session","id":"abc"}\n'
            '{"type":"message","message":{"role":"user","content":"My bicycle has the number WX4417."}}\n'
        )
        context = TurnContext(session_id="abc", sessions_folder=str(folder))
        memory.turns.session_start(context)
        memory.turns.before("Hello", context)
        memory.turns.after(said("My bicycle has the number WX4417.", "OK."), True, context)
        memory.turns.session_end(context)
        assert memory.settle()
        assert paths(memory, "WX4417") == ["sessions/abc.jsonl"]
        assert not (home / "transcripts").exists()

    @pytest.mark.parametrize("settings", [{"record_sessions": False}, {"sources": ["memory"]}])
    def test_recording_can_be_switched_off(
        self, open_memory: OpenMemory, open_host: OpenHost, home: Path, settings: dict[str, Any]
    ) -> None:
        host, memory = open_host(open_memory(**settings))
        host.turn("My bicycle has the frame number WX4417.")
        host.new_session("session-2")
        assert memory.settle()
        assert paths(memory, "WX4417") == []
        assert not (home / "transcripts").exists()
        memory.close()
        assert any("WX4417" in text for text in kept(home))

    @pytest.mark.sqlite
    def test_a_folder_that_could_not_be_noted_is_tried_again_beside_the_turns(
        self, open_memory: OpenMemory, workspace: Path
    ) -> None:
        memory = open_memory(watch=False)
        context = TurnContext(session_id="s", workspace=str(workspace))
        database = memory._engine.store.database
        with database.write() as connection:
            run(connection, "CREATE TRIGGER never BEFORE INSERT ON file_roots BEGIN SELECT raise(ABORT, 'never'); END")
        memory.turns.before("Hello", context)
        turn = threading.Thread(target=memory.turns.before, args=("Hello", context), daemon=True)
        with database.write() as connection:
            run(connection, "DROP TRIGGER never")
            turn.start()
            # It ends although nobody else can write.
            turn.join(30)
            assert not turn.is_alive()
        assert memory.settle()
        assert paths(memory, "staging database") == ["MEMORY.md"]

    def test_a_failed_turn_is_not_recorded(self, memory: Memory) -> None:
        context = TurnContext(session_id="s")
        memory.turns.after(said("My bicycle has the number WX4417."), False, context)
        memory.turns.after(
            said("My bicycle has the number WX4418."), True, dataclasses.replace(context, trigger="heartbeat")
        )
        memory.turns.session_end(context)
        assert memory.settle()
        assert paths(memory, "WX4417") == paths(memory, "WX4418") == []


class TestCompaction:
    def test_a_long_conversation_is_flushed_once_a_cycle_and_nothing_of_it_is_lost(
        self, open_memory: OpenMemory, workspace: Path, clock: ManualClock
    ) -> None:
        """A scripted host with a window of 30,000 tokens: no model and no key has a part in it."""
        memory = open_memory(workspace=workspace, watch=False)
        runner = HookRunner()
        runner.register(hookimpls_for(memory=memory))
        context = TurnContext(session_id="long", workspace=str(workspace))
        history: list[dict[str, Any]] = []
        tokens, compactions, dropped, flushes = 0, 0, 0, []
        for number in range(24):
            clock.advance(60.0)
            history += said(f"Item {number} on the list is finch{number}. {FILLER}", f"Item {number} it is.")
            runner.agent_end(tuple(history), True, context)
            tokens += 1_000
            request = memory.files.flush_due(tokens, 30_000, compactions, "long")
            if request is not None:
                flushes.append((number, compactions))
                assert "memory/" in request.prompt
                assert "compacted" in request.system_prompt
                memory.files.append_note(f"The list has come to item {number}.", "Flush")
            if tokens >= 10_000:
                runner.before_compaction(tuple(history), context)
                del history[:-2]
                tokens, compactions, dropped = 2_000, compactions + 1, number
        assert [cycle for _, cycle in flushes] == [0, 1, 2]
        assert compactions == 2
        assert memory.settle()
        for number in range(dropped + 1):
            turns = [result for result in memory.files.search(f"finch{number}").results if result.role == "user"]
            assert [result.session for result in turns if f"finch{number}." in result.snippet] == ["long"]
        day = datetime.fromtimestamp(clock.now()).astimezone().date().isoformat()
        note = (workspace / "memory" / f"{day}.md").read_text()
        assert note.count("Flush") == 3
        assert f"memory/{day}.md" in paths(memory, "The list has come to item")

    def test_messages_that_only_a_compaction_brings_are_taken_in(self, open_host: OpenHost, home: Path) -> None:
        _, memory = open_host()
        context = TurnContext(session_id="session-1", host="fake")
        plugin = hookimpls_for(memory=memory)
        plugin.before_compaction(said("My brother Karl lives in Rotterdam.", "OK."), context)
        assert memory.settle()
        assert paths(memory, "Karl Rotterdam")
        memory.close()
        assert kept(home) == ["My brother Karl lives in Rotterdam."]

    def test_a_flush_can_be_switched_off_and_put_in_other_words(self, open_memory: OpenMemory) -> None:
        off = open_memory(flush={"enabled": False})
        assert off.files.flush_due(100_000, 30_000, 0, "s") is None
        off.close()
        own = open_memory(flush={"prompt": "Write to {path}.", "system_prompt": "Today is {date}."})
        request = own.files.flush_due(100_000, 30_000, 0, "s")
        assert request is not None
        assert request.prompt.startswith("Write to memory/20")
        assert request.system_prompt.startswith("Today is 20")
        assert own.files.flush_due(100_000, 30_000, 0, "s") is None
        assert own.files.flush_due(100_000, 30_000, 0, "another") is not None

    def test_a_note_needs_a_workspace_and_someone_who_may_write(self, memory: Memory, workspace: Path) -> None:
        with pytest.raises(InputError, match="workspace"):
            Memory(engine_of(memory), TurnContext(agent_id="ann")).files.append_note("Hello.")
        nobody = Memory(engine_of(memory), TurnContext(agent_id="", workspace=str(workspace)))
        with pytest.raises(ScopeError):
            nobody.files.append_note("Hello.")
        assert list((workspace / "memory").iterdir()) == []

    def test_a_note_goes_to_the_workspace_in_use(
        self, open_memory: OpenMemory, workspace: Path, tmp_path: Path
    ) -> None:
        memory = open_memory(workspace=workspace)
        other = tmp_path / "another"
        other.mkdir()
        memory.files.add(other)
        assert memory.files.append_note("Hello.").parent == workspace / "memory"


def engine_of(memory: Memory) -> Engine:
    """Return what all agents of one host share."""
    return memory.files._engine


class TestPrompt:
    def recall(self, memory: Memory, prompt: str = QUESTION, **values: Any) -> Recall | None:
        context = TurnContext(**{"session_id": "s", "prompt_mode": "full", **values})
        return hookimpls_for(memory=memory).before_agent_start(prompt, [], context)

    def names(self, recall: Recall | None) -> list[str]:
        return [section.name for section in recall.sections] if recall else []

    def test_sections_come_with_a_recall_and_without_one(self, memory: Memory) -> None:
        alone = self.recall(memory)
        assert alone is not None
        assert (alone.block, alone.items) == ("", ())
        assert self.names(alone) == ["memory recall", "project context", "runtime"]
        assert TEXT in alone.sections[1].text
        assert (
            alone.sections[2].text == "Memory: backend=perdure, provider=hash, sources=memory+sessions, citations=auto"
        )
        memory.store("My dentist is Doctor Wagner in Linz.")
        both = self.recall(memory, "Who is my dentist in Linz?")
        assert both is not None
        assert "Wagner" in both.block
        assert both.sections == alone.sections

    @pytest.mark.parametrize("mode", ["none", "minimal", ""])
    def test_no_section_in_another_mode(self, memory: Memory, mode: str) -> None:
        assert self.recall(memory, prompt_mode=mode) is None

    def test_sections_without_recalls(self, open_memory: OpenMemory, workspace: Path) -> None:
        memory = open_memory(workspace=workspace, auto_recall=False)
        memory.store(TEXT)
        recall = self.recall(memory)
        assert recall is not None
        assert recall.block == ""
        assert "project context" in self.names(recall)

    def test_without_a_model_the_provider_is_none(self, open_memory: OpenMemory) -> None:
        recall = self.recall(open_memory(embedder="none"))
        assert recall is not None
        assert "provider=none" in recall.sections[-1].text

    @pytest.mark.parametrize("line", [30, 99, 5_000])
    def test_a_long_memory_md_is_cut_and_said_to_go_on(
        self, open_memory: OpenMemory, workspace: Path, line: int
    ) -> None:
        (workspace / "MEMORY.md").write_text("\n".join("z" * line for _ in range(200_000 // line)))
        memory = open_memory(workspace=workspace)
        recall = self.recall(memory)
        assert recall is not None
        context = recall.sections[1].text
        assert 10_000 < context.count("z") <= 20_000
        assert "MEMORY.md continues" in context
        assert len(context) < 20_300

    def test_secrets_are_taken_out(self, memory: Memory, workspace: Path) -> None:
        secret = "ghp_" + "a1B2" * 9
        (workspace / "MEMORY.md").write_text(f"The token is {secret}.")
        recall = self.recall(memory)
        assert recall is not None
        assert secret not in repr(recall)

    @pytest.mark.parametrize("harm", ["link", "binary", "folder", "missing"])
    def test_a_memory_md_that_cannot_be_read_costs_its_section_only(
        self, memory: Memory, workspace: Path, tmp_path: Path, harm: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        path = workspace / "MEMORY.md"
        path.unlink()
        match harm:
            case "link":
                (tmp_path / "outside.md").write_text("secret")
                path.symlink_to(tmp_path / "outside.md")
            case "binary":
                path.write_bytes(b"\0\1\2")
            case "folder":
                path.mkdir()
        memory.store("My dentist is Doctor Wagner in Linz.")
        recall = self.recall(memory, "Who is my dentist in Linz?")
        assert recall is not None
        assert "Wagner" in recall.block
        assert self.names(recall) == ["memory recall", "runtime"]
        assert complaints(caplog) == []

    def test_the_agents_current_workspace_comes_first(self, memory: Memory, tmp_path: Path) -> None:
        for name in ("first", "second"):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "MEMORY.md").write_text(f"This is the {name} workspace.")
        for name in ("first", "second", "first"):
            recall = self.recall(memory, agent_id="ann", workspace=str(tmp_path / name))
            assert recall is not None
            assert f"This is the {name} workspace." in recall.sections[1].text


class TestHosts:
    def test_agents_see_their_own_folders_and_conversations_only(
        self, open_memory: OpenMemory, tmp_path: Path, workspace: Path
    ) -> None:
        memory = open_memory(workspace=workspace, watch=False)
        runner = HookRunner()
        runner.register(hookimpls_for(memory=memory))
        contexts = {}
        for agent, bird in (("ann", "robin"), ("bob", "raven")):
            folder = tmp_path / agent
            (folder / "memory").mkdir(parents=True)
            (folder / "MEMORY.md").write_text(f"The password hint of {agent} is {bird}.")
            contexts[agent] = TurnContext(
                session_id=f"of-{agent}", agent_id=agent, workspace=str(folder), prompt_mode="full"
            )
            runner.session_start(contexts[agent])
            runner.agent_end(said(f"My favourite tree is the {bird}tree.", "OK."), True, contexts[agent])
            runner.session_end(contexts[agent])
        assert memory.settle()
        for agent, own, other in (("ann", "robin", "raven"), ("bob", "raven", "robin")):
            files = Files(engine_of(memory), contexts[agent])
            assert {result.source for result in files.search(f"{own} {own}tree").results} == {"memory", "sessions"}
            assert files.search("password hint", min_score=0.0).results
            for query in (other, f"{other}tree", "password hint", "favourite tree", QUESTION):
                assert other not in repr(files.search(query, min_score=0.0, max_results=100))
            assert other not in repr(files.status(deep=True))
            assert other not in files.read("MEMORY.md").text
            [recall] = runner.before_agent_start("Hello", [], contexts[agent])
            assert own in repr(recall.sections)
            assert other not in repr(recall.sections)
        for nobody in (TurnContext(agent_id=""), TurnContext(agent_id=" ann")):
            assert Files(engine_of(memory), nobody).search("robin raven heron", min_score=0.0).results == ()
            with pytest.raises(ScopeError):
                Files(engine_of(memory), nobody).add(tmp_path)

    def test_status_counts_what_the_caller_may_see(self, memory: Memory, tmp_path: Path) -> None:
        (tmp_path / "ann" / "memory").mkdir(parents=True)
        (tmp_path / "ann" / "memory" / "a.md").write_text("A robin.")
        memory.files.sync()
        memory.files.embed()
        ann = Memory(engine_of(memory), TurnContext(agent_id="ann"))
        ann.files.add(tmp_path / "ann")
        assert memory.files.status().dirty == 0
        assert ann.files.status().added == ("memory/a.md",)
        engine_of(memory).files.index.sync(engine_of(memory).files.sync.roots(), patience=-1)
        assert (memory.files.status().files, memory.files.status().without_vector) == (1, 0)
        assert (ann.files.status().files, ann.files.status().without_vector) == (2, 1)

    def test_what_is_read_is_ones_own_before_what_is_shared(self, memory: Memory, tmp_path: Path) -> None:
        ann = Memory(engine_of(memory), TurnContext(agent_id="ann"))
        assert ann.files.read("MEMORY.md").text == f"# Servers\n\n{TEXT}\n"
        (tmp_path / "ann").mkdir()
        (tmp_path / "ann" / "MEMORY.md").write_text("Ann's own.")
        ann.files.add(tmp_path / "ann")
        assert ann.files.read("MEMORY.md").text == "Ann's own."
        assert memory.files.read("MEMORY.md").text == f"# Servers\n\n{TEXT}\n"

    @pytest.mark.parametrize(("chat", "shown"), [("direct", True), ("group", False)])
    def test_citations_stay_out_of_groups(self, memory: Memory, chat: str, shown: bool) -> None:
        [result] = Files(engine_of(memory), TurnContext(chat=chat)).search(QUESTION).results
        assert (result.citation is not None) is shown

    def harmed(self, home: Path) -> None:
        for path in home.glob("index*"):
            path.unlink()
        # A folder in the place of its lock: no index can be written.
        (home / "index.lock").mkdir()

    def test_a_failing_index_leaves_the_turn_untouched(
        self, open_memory: OpenMemory, open_host: OpenHost, workspace: Path, home: Path
    ) -> None:
        host, memory = open_host(open_memory(workspace=workspace, watch=False))
        memory.store(TEXT)
        assert memory.files.search("heron").backend == "hybrid"
        self.harmed(home)
        turn = host.turn(f"{QUESTION} I live in Graz.")
        assert TEXT in turn.prompt_seen
        host.new_session("session-2")
        assert memory.settle()
        assert "Graz" in host.turn("Where do I live?").prompt_seen
        answer = memory.files.search("staging database heron")
        assert answer.backend == "substring"
        assert "index" in str(answer.reason)
        assert "MEMORY.md" in [result.path for result in answer.results]

    @pytest.mark.parametrize("folder", ["\0", "x" * 5_000, "/proc/1/none"])
    def test_a_folder_that_cannot_be_used_leaves_the_turn_untouched(
        self, open_memory: OpenMemory, caplog: pytest.LogCaptureFixture, folder: str
    ) -> None:
        memory = open_memory()
        memory.store(TEXT)
        context = TurnContext(session_id="s", workspace=folder, sessions_folder=folder, prompt_mode="full")
        for _ in range(3):
            recall = hookimpls_for(memory=memory).before_agent_start(QUESTION, [], context)
            assert recall is not None
            assert TEXT in recall.block
        assert len(complaints(caplog)) <= 2
        assert not any("turn continues without it" in told for told in complaints(caplog))
