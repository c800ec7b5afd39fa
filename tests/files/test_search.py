"""Searching files and conversations: what is found, how sure it is, and what happens when something is missing."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from perdure.clock import ManualClock
from perdure.embed.base import Embedder
from perdure.embed.deterministic import HashEmbedder
from perdure.embed.load import load_default
from perdure.errors import InputError, StoreFullError
from perdure.files.index import FileIndex
from perdure.files.options import FilesOptions
from perdure.files.roots import Kind, Root, root_of
from perdure.files.search import Answer, Ask, FileSearch, Result, citation
from perdure.ranking.passages import Weights
from perdure.store.scope import Audience, Scope
from perdure.store.store import Store
from tests.faulty import FailingEmbedder

OWNER = Audience.of()
MINE = Scope("user", "owner")
DAY = 86_400.0
TODAY = 1_771_891_200.0
"""2026-02-24, midnight UTC."""
HERON = "The staging database is called heron."
NONSENSE = "zebra xylophone quantum marmalade"
WORDS = [f"{first}{second}" for first in ("gar", "lum", "pol", "tid", "wex") for second in ("den", "mor", "nak", "sil")]


class Library:
    """Files on disk, their index and its search, for any number of scopes."""

    def __init__(self, folder: Path, embedder: Embedder | None = None, **options: Any) -> None:
        self.folder = folder
        self.clock = ManualClock(TODAY)
        self.embedder = embedder
        self.store = Store(folder / "home", clock=self.clock)
        self.index = FileIndex(self.store, FilesOptions(**options))
        self.search = FileSearch(self.index, lambda: self.embedder, self.clock)
        self.roots: list[Root] = []

    def write(self, name: str, text: str, scope: Scope = MINE, kind: Kind = "workspace") -> Path:
        """Write a file under the root of this scope and kind, which is made if it is new."""
        folder = self.folder / str(scope).replace(":", "-") / kind
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        root = root_of(scope, folder, kind)
        if root not in self.roots:
            self.roots.append(root)
        return path

    def talk(self, session: str, *said: str, scope: Scope = MINE) -> None:
        """Write a conversation; the speakers take turns."""
        roles = ("user", "assistant")
        lines = [{"role": roles[at % 2], "content": text, "timestamp": TODAY + at} for at, text in enumerate(said)]
        header = {"type": "session", "id": session}
        self.write(f"{session}.jsonl", "".join(json.dumps(line) + "\n" for line in [header, *lines]), scope, "sessions")

    def sync(self) -> None:
        self.index.sync(self.roots)
        if self.embedder is not None and not isinstance(self.embedder, FailingEmbedder):
            self.index.embed(self.embedder, 100_000)

    def ask(self, query: str, audience: Audience = OWNER, **values: Any) -> Answer:
        return self.search.search(Ask(query, **values), audience, lambda: self.roots)

    def found(self, query: str, **values: Any) -> Sequence[Result]:
        return self.ask(query, **values).results

    @property
    def index_file(self) -> Path:
        [path] = self.store.folder.glob("index-*.db")
        return path

    def close(self) -> None:
        self.search.close()
        self.index.close()
        self.store.close()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path, HashEmbedder())
    yield library
    library.close()


@pytest.fixture
def by_words(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path)
    yield library
    library.close()


def unrelated(count: int, seed: int = 0) -> Iterator[str]:
    """Yield texts of words that occur in no question here."""
    choice = random.Random(seed)
    for _ in range(count):
        yield " ".join(choice.choices(WORDS, k=20)).capitalize() + "."


class TestFinding:
    def test_one_chunk_is_enough_for_words(self, by_words: Library) -> None:
        by_words.write("MEMORY.md", f"# Servers\n\n{HERON}\n")
        by_words.sync()
        [result] = by_words.found("Which database is staging?")
        assert result.citation == "MEMORY.md#L1-L3"
        assert result.section == "Servers"
        assert HERON in result.snippet
        assert result.score > 0.8

    def test_shared_words_and_vectors_find_the_exact_lines(self, library: Library) -> None:
        filler = "\n\n".join(f"## Part {number}\n\n{text}" for number, text in enumerate(unrelated(20)))
        library.write("memory/servers.md", f"{filler}\n\n## Databases\n\n{HERON}\n")
        library.sync()
        [result] = library.found("heron staging database")
        lines = (library.roots[0].path / "memory/servers.md").read_text().splitlines()
        assert "\n".join(lines[result.start_line - 1 : result.end_line]) == result.snippet
        assert lines[result.end_line - 1] == HERON
        assert result.citation == f"memory/servers.md#L{result.start_line}-L{result.end_line}"

    def test_meaning_alone_is_found_by_the_model(self, tmp_path: Path) -> None:
        library = Library(tmp_path, load_default())
        for number, text in enumerate(unrelated(5)):
            library.write(f"memory/other{number}.md", text)
        library.write("memory/pets.md", "# Animals\n\nOur puppy barks at the postman every morning.\n")
        library.sync()
        try:
            [result] = library.found("a dog that makes noise at the mailman")
            assert result.citation == "memory/pets.md#L1-L3"
            assert library.found(NONSENSE) == ()
        finally:
            library.close()

    @pytest.mark.parametrize("embedder", [None, HashEmbedder()])
    def test_a_literal_is_found_with_the_default_score(self, tmp_path: Path, embedder: Embedder | None) -> None:
        library = Library(tmp_path, embedder)
        for number, text in enumerate(unrelated(30)):
            library.write(f"memory/{number}.md", text)
        library.write("memory/trouble.md", "The nightly job died with ERR_4412 and was started again by hand.")
        library.talk("s", "It says ERR_4413 on my screen.", "Restart it.")
        library.sync()
        try:
            assert library.found("ERR_4412")[0].path == "memory/trouble.md"
            assert library.found("ERR_4413")[0].path == "sessions/s.jsonl"
        finally:
            library.close()

    @pytest.mark.parametrize("query", ["東京", "東京タワー", "서울", "กรุงเทพ"])
    def test_scripts_without_spaces(self, by_words: Library, query: str) -> None:
        by_words.write("MEMORY.md", "東京タワーは高い。 서울에 산다。 กรุงเทพมหานคร\n")
        for number, text in enumerate(unrelated(10)):
            by_words.write(f"memory/{number}.md", text)
        by_words.sync()
        assert [result.path for result in by_words.found(query)] == ["MEMORY.md"]

    def test_a_phrase_counts_once_however_common_its_characters_are(self, by_words: Library) -> None:
        """A CJK word is a phrase of characters; in which rows they stand apart says nothing of the word."""
        by_words.write("memory/word.md", "京都 マンゴー")
        by_words.write("memory/other.md", "京都 パパイヤ")
        for number in range(40):
            by_words.write(f"memory/{number}.md", f"京 {number} 都")
        by_words.sync()
        both, one = by_words.found("京都 マンゴー", min_score=0.0)[:2]
        assert (both.path, one.path) == ("memory/word.md", "memory/other.md")
        assert one.score < 0.5 * both.score

    def test_a_long_question_is_measured_by_the_words_that_were_searched(self, by_words: Library) -> None:
        said = " ".join(WORDS)
        by_words.write("MEMORY.md", said)
        by_words.sync()
        [result] = by_words.found(said)
        assert result.score > 0.9

    def test_a_turn_says_who_said_it_and_when(self, library: Library) -> None:
        library.talk("s1", "My brother Karl moved to Rotterdam.", "Noted.")
        library.sync()
        result = library.found("Where did Karl move?")[0]
        assert (result.source, result.session, result.speaker, result.role) == ("sessions", "s1", "User", "user")
        assert result.at == TODAY
        assert result.citation == "sessions/s1.jsonl#L2-L2"

    def test_a_turn_gains_by_the_turns_around_it(self, tmp_path: Path) -> None:
        said = "On the fourteenth, in the small hall."
        scores = {}
        for name, weight in (("with", 0.2), ("without", 0.0)):
            library = Library(tmp_path / name, turns=Weights(keyword=0.5, vector=0.5, neighbour=weight))
            library.talk("s", said, "So the choir sings at the harbour festival.", *unrelated(6))
            library.sync()
            found = library.found("choir harbour festival", min_score=0.0)
            scores[name] = next((result.score for result in found if result.snippet == said), 0.0)
            library.close()
        assert scores["with"] >= scores["without"] + 0.1

    @pytest.mark.parametrize(("asked", "first"), [("yesterday", "then"), ("today", "now")])
    def test_a_turn_gains_by_the_time_that_is_asked_about(self, library: Library, asked: str, first: str) -> None:
        said = "We went to the bakery with Karl."
        for name, at in (("then", TODAY - DAY), ("now", TODAY + 60.0)):
            lines = [{"type": "session", "id": name}, {"role": "user", "content": said, "timestamp": at}]
            library.write(f"{name}.jsonl", "".join(json.dumps(line) + "\n" for line in lines), kind="sessions")
        library.sync()
        assert library.found(f"Who went to the bakery {asked}?")[0].session == first

    @pytest.mark.parametrize(("zone", "first"), [("Pacific/Auckland", "late"), ("America/Los_Angeles", "early")])
    def test_a_day_that_is_asked_about_is_that_of_the_reader(self, tmp_path: Path, zone: str, first: str) -> None:
        # Asked at midnight of UTC: then it is 13:00 in Auckland, and 16:00 of the day before in Los Angeles.
        library = Library(tmp_path, zone=ZoneInfo(zone))
        for name, ago in (("early", 39), ("late", 14)):
            at = TODAY - ago * 3600.0
            message = {"role": "user", "content": "We went to the bakery with Karl.", "timestamp": at}
            lines = [{"type": "session", "id": name}, message]
            library.write(f"{name}.jsonl", "".join(json.dumps(line) + "\n" for line in lines), kind="sessions")
        library.sync()
        assert library.found("Who went to the bakery yesterday?")[0].session == first
        library.close()

    def test_of_turns_that_all_are_sure_the_surest_is_first(self, tmp_path: Path) -> None:
        said = "The choir sings at the harbour festival."
        library = Library(tmp_path, turns=Weights(keyword=1.0, vector=0.0, neighbour=0.5), mmr=1.0)
        library.talk("all about it", *[said] * 5, *unrelated(6))
        library.talk("in passing", *unrelated(3), said, *unrelated(6, seed=1))
        library.sync()
        found = library.found("choir sings harbour festival", max_results=20)
        library.close()
        assert {result.session for result in found if result.score == 1.0} == {"all about it", "in passing"}
        assert found[0].session == "all about it"
        assert max(result.score for result in found) == 1.0

    def test_near_duplicates_give_way(self, tmp_path: Path) -> None:
        same = "The invoice of the gardener is due on Friday and goes to the bank in Linz"
        other = "On Friday the plumber, who lives behind the old church, sent an invoice that his brother had written."
        first = {}
        for name, weight in (("variety", 0.7), ("score alone", 1.0)):
            library = Library(tmp_path / name, mmr=weight)
            for number in range(4):
                library.write(f"memory/copy{number}.md", f"{same} {number}.")
            library.write("memory/other.md", other)
            library.sync()
            first[name] = [result.path for result in library.found("invoice Friday", max_results=5, min_score=0.1)][:2]
            library.close()
        assert "memory/other.md" in first["variety"]
        assert "memory/other.md" not in first["score alone"]


class TestScore:
    def score(self, folder: Path, beside: int) -> float:
        library = Library(folder, HashEmbedder())
        text = "\n\n".join(f"## Part {number}\n\n{text}" for number, text in enumerate(unrelated(beside)))
        library.write("memory/other.md", text)
        library.write("memory/heron.md", HERON)
        library.sync()
        try:
            [result] = library.found("staging database heron")
            assert result.path == "memory/heron.md"
            return result.score
        finally:
            library.close()

    def test_is_the_same_beside_one_text_and_beside_many(self, tmp_path: Path) -> None:
        few = self.score(tmp_path / "few", 1)
        many = self.score(tmp_path / "many", 500)
        assert few > 0.6
        assert many == pytest.approx(few, abs=0.15)

    def test_what_says_half_of_the_words_scores_half(self, tmp_path: Path) -> None:
        library = Library(tmp_path, files=Weights(keyword=1.0, vector=0.0))
        for number, text in enumerate(unrelated(20)):
            library.write(f"memory/{number}.md", f"{text} {'heron' if number == 10 else 'stork'}")
        library.sync()
        [whole], [half] = library.found("heron"), library.found("heron xylophone")
        library.close()
        assert whole.score == pytest.approx(1.0, abs=0.1)
        assert half.score == pytest.approx(0.5, abs=0.1)

    def test_nothing_answers_what_is_unrelated(self, library: Library) -> None:
        for number, text in enumerate(unrelated(50)):
            library.write(f"memory/{number}.md", text)
        library.write("MEMORY.md", HERON)
        library.talk("s", *unrelated(50, seed=1))
        library.sync()
        assert all(result.score < 0.35 for result in library.found(NONSENSE, min_score=0.0, max_results=100))
        assert library.found(NONSENSE) == ()
        assert library.ask(NONSENSE).backend == "hybrid"

    def test_a_dated_file_counts_half_after_thirty_days(self, library: Library) -> None:
        library.write("memory/2026-02-24.md", HERON)
        library.write("memory/heron-2026-01-25.md", HERON)
        library.write("MEMORY.md", HERON)
        library.sync()
        values = {result.path: result.score for result in library.found("heron database")}
        library.clock.advance(30 * DAY)
        later = library.found("heron database")
        scores = {result.path: result.score for result in later}
        assert scores["memory/2026-02-24.md"] == pytest.approx(values["memory/2026-02-24.md"] / 2, abs=1e-3)
        assert scores["MEMORY.md"] == values["MEMORY.md"]
        assert scores["memory/heron-2026-01-25.md"] == values["memory/heron-2026-01-25.md"]
        assert later[-1].path == "memory/2026-02-24.md"

    def test_of_two_days_the_newer_comes_first_and_an_old_note_still_answers(self, library: Library) -> None:
        library.write("memory/2020-05-05.md", f"{HERON} It runs in Graz.")
        library.write("memory/2026-02-20.md", f"{HERON} It runs in Linz.")
        library.sync()
        assert [result.path for result in library.found("heron database")] == [
            "memory/2026-02-20.md",
            "memory/2020-05-05.md",
        ]
        old = next(result for result in library.found("heron Graz") if result.path == "memory/2020-05-05.md")
        assert old.score < 0.01

    def test_a_day_to_come_counts_as_today(self, library: Library) -> None:
        library.write("memory/2026-02-24.md", HERON)
        library.write("memory/2027-02-24.md", HERON)
        library.sync()
        first, second = library.found("heron")
        assert first.score == second.score


class TestAsking:
    def test_bounds(self, library: Library) -> None:
        for number in range(12):
            library.write(f"memory/{number}.md", f"{HERON} Copy {number} of {WORDS[number]}.")
        library.sync()
        assert len(library.found("heron")) == 6
        assert len(library.found("heron", max_results=1)) == 1
        assert len(library.found("heron", max_results=100)) == 12
        assert library.found("heron copy unheard", min_score=1.0) == ()
        scores = [result.score for result in library.found("heron", min_score=0.0, max_results=100)]
        assert all(0.0 <= score <= 1.0 for score in scores)

    @pytest.mark.parametrize(
        ("values", "told"),
        [
            ({"max_results": 0}, "1 to 100"),
            ({"max_results": 101}, "1 to 100"),
            ({"min_score": -0.1}, "0 to 1"),
            ({"min_score": 1.1}, "0 to 1"),
            ({"min_score": float("nan")}, "0 to 1"),
            ({"sources": ("memory", "mails")}, "'mails'"),
        ],
    )
    def test_what_is_out_of_bounds_is_named(self, values: dict[str, Any], told: str) -> None:
        with pytest.raises(InputError, match=told):
            Ask("heron", **values)

    def test_a_snippet_is_cut(self, library: Library) -> None:
        library.talk("s", "heron " * 116, "A heron is " + "heron " * 120)
        library.sync()
        short, cut = sorted((result.snippet for result in library.found("heron")), key=len)
        assert short == ("heron " * 116).strip()
        assert len(cut) <= 700
        assert cut.endswith("…")
        assert ("A heron is " + "heron " * 120).startswith(cut[:-1])

    def test_sources(self, library: Library) -> None:
        library.write("MEMORY.md", HERON)
        library.talk("s", HERON)
        library.sync()
        assert {result.source for result in library.found("heron")} == {"memory", "sessions"}
        for source in ("memory", "sessions"):
            assert {result.source for result in library.found("heron", sources=(source,))} == {source}

    def test_a_conversation_can_be_left_out(self, library: Library) -> None:
        library.talk("now", HERON)
        library.talk("before", HERON)
        library.sync()
        assert {result.session for result in library.found("heron", skip_session="now")} == {"before"}
        library.index_file.unlink()
        assert {result.session for result in library.found("heron", skip_session="now")} == {"before"}

    @pytest.mark.parametrize(
        ("mode", "chat", "shown"),
        [
            ("auto", "direct", True),
            ("auto", "group", False),
            ("auto", "channel", False),
            ("on", "group", True),
            ("off", "direct", False),
        ],
    )
    def test_citations(self, tmp_path: Path, mode: str, chat: str, shown: bool) -> None:
        library = Library(tmp_path, citations=mode)
        library.write("MEMORY.md", HERON)
        library.sync()
        [result] = library.found("heron", chat=chat)
        library.close()
        assert result.citation == (citation("MEMORY.md", 1, 1) if shown else None)
        assert ("citation" in result.to_dict()) is shown
        assert (result.path, result.start_line, result.end_line) == ("MEMORY.md", 1, 1)

    def test_the_envelope(self, library: Library) -> None:
        library.write("MEMORY.md", f"# Servers\n\n{HERON}")
        library.sync()
        envelope = library.ask("heron").to_dict()
        [result] = envelope.pop("results")
        assert envelope == {"backend": "hybrid", "provider": "hash", "dirty": 0}
        score = result.pop("score")
        assert 0.35 <= score <= 1
        assert result == {
            "path": "MEMORY.md", "startLine": 1, "endLine": 3, "snippet": f"# Servers\n\n{HERON}",
            "source": "memory", "section": "Servers", "citation": "MEMORY.md#L1-L3",
        }  # fmt: skip
        assert json.loads(json.dumps(library.ask("heron").to_dict()))


class TestLadder:
    def test_hybrid_needs_no_reason(self, library: Library) -> None:
        library.write("MEMORY.md", HERON)
        library.sync()
        answer = library.ask("heron")
        assert (answer.backend, answer.provider, answer.reason, answer.disabled) == ("hybrid", "hash", None, False)

    @pytest.mark.parametrize(
        ("embedder", "reason"),
        [(None, "there is no embedding model, or it is still loading"), (FailingEmbedder(), "as it was made to")],
    )
    def test_by_words_without_a_model(self, library: Library, embedder: Embedder | None, reason: str) -> None:
        library.write("MEMORY.md", HERON)
        library.sync()
        library.embedder = embedder
        answer = library.ask("heron")
        assert (answer.backend, answer.provider) == ("keyword", "none")
        assert reason in str(answer.reason)
        assert [result.path for result in answer.results] == ["MEMORY.md"]

    def test_a_text_without_a_vector_goes_by_its_words(self, library: Library) -> None:
        library.write("MEMORY.md", HERON)
        library.index.sync(library.roots)
        answer = library.ask("heron")
        assert (answer.backend, len(answer.results)) == ("hybrid", 1)

    def test_another_models_vectors_are_not_compared(self, library: Library) -> None:
        library.write("MEMORY.md", HERON)
        library.sync()
        library.embedder = HashEmbedder(128)
        assert [result.path for result in library.found("heron")] == ["MEMORY.md"]

    @pytest.mark.parametrize("harm", ["never built", "removed", "overwritten", "cut off"])
    def test_by_substring_without_an_index(self, library: Library, harm: str) -> None:
        library.write("MEMORY.md", f"# Servers\n\n{HERON}\n")
        for number, text in enumerate(unrelated(200)):
            library.write(f"memory/{number}.md", text)
        library.talk("s", "We call it heron.")
        if harm != "never built":
            library.sync()
            # Opened, with connections at hand: the harm is done behind its back.
            assert library.ask("heron").backend == "hybrid"
        match harm:
            case "removed":
                for path in library.store.folder.glob("index-*.db*"):
                    path.unlink()
            case "overwritten":
                size = library.index_file.stat().st_size
                library.index.close()
                library.search.close()
                library.index_file.write_bytes(b"\0" * size)
            case "cut off":
                library.index.close()
                library.index_file.write_bytes(library.index_file.read_bytes()[:3000])
        answer = library.ask("staging database heron")
        assert answer.backend == "substring"
        assert "index" in str(answer.reason)
        first = answer.results[0]
        assert (first.citation, first.section, first.score) == ("MEMORY.md#L1-L3", "Servers", 1.0)
        assert {result.source for result in library.found("heron", min_score=0.0)} == {"memory", "sessions"}

    def test_a_page_that_breaks_under_an_open_index(self, library: Library) -> None:
        for number, text in enumerate(unrelated(300)):
            library.write(f"memory/{number}.md", f"{text} {number} heron")
        library.sync()
        assert library.ask("heron").backend == "hybrid"
        generation = library.index.generations.live()
        assert generation is not None
        with generation.database.read() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        content = bytearray(library.index_file.read_bytes())
        content[8192:] = random.Random(1).randbytes(len(content) - 8192)
        library.index_file.write_bytes(content)
        # Nobody keeps what it has read for ever; here the memory is taken at once.
        with generation.database.read() as connection:
            connection.execute("PRAGMA shrink_memory").fetchall()
        answer = library.ask("gardener heron")
        assert answer.backend == "substring"
        assert "is damaged" in str(answer.reason)
        assert answer.results

    def test_an_index_that_cannot_be_written_still_answers(self, library: Library) -> None:
        library.write("MEMORY.md", HERON)
        library.sync()

        def full() -> int:
            raise StoreFullError("the disk is full")

        answer = library.search.search(Ask("heron"), OWNER, lambda: library.roots, full)
        assert (answer.backend, answer.reason) == (
            "hybrid",
            "the index cannot be updated: the disk is full",
        )
        assert [result.path for result in answer.results] == ["MEMORY.md"]

    def test_substrings_also_age_and_give_way(self, library: Library) -> None:
        library.write("memory/2025-12-24.md", HERON)
        library.write("memory/2026-02-24.md", HERON)
        new, old = library.found("heron")
        assert (new.path, new.score) == ("memory/2026-02-24.md", 1.0)
        assert old.score < 0.3

    def test_disabled_without_a_source(self, tmp_path: Path) -> None:
        library = Library(tmp_path, sources=())
        library.write("MEMORY.md", HERON)
        library.sync()
        answer = library.ask("heron")
        library.close()
        assert (answer.backend, answer.results, answer.disabled) == ("disabled", (), True)
        assert "source" in str(answer.reason)
        assert answer.to_dict()["disabled"] is True

    def test_disabled_without_anything_that_can_be_read(self, library: Library) -> None:
        answer = library.ask("heron")
        assert answer.disabled
        assert "no files to search instead" in str(answer.reason)
        library.write("MEMORY.md", HERON, Scope("agent", "bob"))
        assert library.ask("heron").disabled

    def test_a_rebuild_does_not_disturb_those_who_search(self, library: Library) -> None:
        library.write("MEMORY.md", HERON)
        library.sync()
        done = threading.Event()
        answers: list[Answer] = []

        def searching() -> None:
            while not done.is_set():
                answers.append(library.ask("heron"))

        threads = [threading.Thread(target=searching) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            library.index.sync(library.roots, force=True)
        done.set()
        for thread in threads:
            thread.join()
        assert {(answer.backend, answer.reason) for answer in answers} == {("hybrid", None)}
        assert {tuple(result.path for result in answer.results) for answer in answers} == {("MEMORY.md",)}


SCOPES = [Scope("user", "owner"), *(Scope("agent", name) for name in "abcdefghi")]
PIECES = [
    '"', "'", "*", "NEAR(", ")", "AND", "OR NOT", "^", "-", ":", "body :", "{context}", "\0", "\ud800", "\udfff",
    "heron", "secret", "東京", "กรุง", "\u202e", "💥", "; DROP TABLE chunks", "%", "_", "\n", "\t", "#L1-L2", "",
]  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = Library(tmp_path_factory.mktemp("shared"), HashEmbedder())
    for number, scope in enumerate(SCOPES):
        for word in ("heron", "secret"):
            library.write(f"memory/{word}.md", f"The {word} of {scope} is number {number}. 東京 กรุงเทพ", scope)
        library.talk(f"s{number}", f"My secret has number {number}, not the heron's.", scope=scope)
    library.sync()
    yield library
    library.close()


class TestScopes:
    def audience(self, scope: Scope) -> Audience:
        return Audience(frozenset({scope}), scope)

    @pytest.mark.parametrize("rung", ["hybrid", "keyword", "substring"])
    def test_nothing_crosses(self, shared: Library, rung: str) -> None:
        embedder = shared.embedder
        shared.embedder = embedder if rung == "hybrid" else None
        index = shared.index
        lost = FileIndex(shared.store, FilesOptions())
        search = FileSearch(index, lambda: shared.embedder, shared.clock)
        for number, scope in enumerate(SCOPES):
            if rung == "substring":
                hidden = shared.index_file.rename(shared.index_file.with_suffix(".hidden"))
                search = FileSearch(lost, lambda: None, shared.clock)
            try:
                ask = Ask("heron secret number", max_results=100, min_score=0.0)
                answer = search.search(ask, self.audience(scope), lambda: shared.roots)
            finally:
                if rung == "substring":
                    hidden.rename(hidden.with_suffix(".db"))
            assert answer.backend == rung
            assert len(answer.results) == 3
            assert all(f"number {number}" in result.snippet for result in answer.results)
        shared.embedder = embedder
        search.close()
        lost.close()

    def test_no_question_breaks_out(self, shared: Library) -> None:
        choice = random.Random(7)
        hits = 0
        for number in range(2_000):
            if number % 100 == 0:
                query = "".join(choice.choices(PIECES, k=30_000))[:100_000]
            elif number % 3 == 0:
                query = "".join(
                    chr(choice.choice((choice.randrange(128), choice.randrange(0x110000)))) for _ in "x" * 20
                )
            else:
                query = choice.choice(("", " ")).join(choice.choices(PIECES, k=choice.randrange(12)))
            mine = choice.randrange(len(SCOPES))
            answer = shared.ask(query, self.audience(SCOPES[mine]), min_score=0.0, max_results=20)
            assert answer.backend == "hybrid"
            assert all(f"number {mine}" in result.snippet for result in answer.results), repr(query)
            hits += bool(answer.results)
        assert hits > 500

    def test_what_others_store_changes_no_score(self, tmp_path: Path) -> None:
        results = {}
        query = "staging database heron"
        for name in ("alone", "crowded"):
            library = Library(tmp_path / name, HashEmbedder())
            library.write("memory/a.md", HERON)
            library.write("memory/b.md", f"{HERON} {WORDS[0]} {WORDS[1]} {WORDS[2]}")
            library.write("memory/c.md", "The production database is called egret.")
            for text in unrelated(10):
                library.write(f"memory/{text[:12]}.md", text)
            if name == "crowded":
                for number, text in enumerate(unrelated(200, seed=3)):
                    library.write(f"memory/{number}.md", f"{HERON} {text}", Scope("agent", "bob"))
            library.sync()
            found = library.found(query, min_score=0.0, max_results=100)
            results[name] = [(result.path, result.score) for result in found if result.score > 0.15]
            library.close()
        alone, crowded = results["alone"], results["crowded"]
        assert [path for path, _ in alone] == [path for path, _ in crowded]
        assert len(alone) >= 3
        for (_, before), (_, after) in zip(alone, crowded, strict=True):
            assert after == pytest.approx(before, abs=0.1)
