"""What PostgreSQL has to do for the store: keep, find, part tenants, put writers in a row, come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import Memory, TurnContext
from perdure.api.doctor import examine
from perdure.errors import InputError, SettingsError, StoreTooNewError, StoreUnavailableError
from perdure.hooks.host import HookRunner
from perdure.plugin.plugin import hookimpls_for
from perdure.postgres import migrate
from perdure.postgres.database import PostgresDatabase
from perdure.postgres.migrate import MIGRATION
from perdure.store.search import COMMON
from perdure.store.sql import put_meta, run
from tests.postgres.server import Server, running
from tests.waiting import until

pytestmark = pytest.mark.postgres
Open = Callable[..., Memory]
FACT = "The staging database is called heron."


def test_what_one_machine_is_told_another_knows(same_key: None, opened: Open, tmp_path: Path) -> None:
    one, other = opened("one"), opened("other")
    one.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id="s1"))
    assert one.settle()
    found = other.recall("What is the staging database called?")
    assert found is not None
    assert FACT in found.block
    assert not (tmp_path / "other" / "facts.db").exists()


def test_another_key_is_refused_and_the_database_has_none(opened: Open, server: Server) -> None:
    memory = opened("one")
    memory.store(FACT)
    key = memory._engine.store.key.hex()
    with pytest.raises(StoreUnavailableError, match="another key"):
        opened("other")
    with psycopg.connect(server.url) as connection:
        connection.execute("SELECT set_config('perdure.tenant', %s, true)", (memory._engine.settings.store_tenant,))
        values = [value for (value,) in connection.execute("SELECT value FROM meta").fetchall()]
    assert values
    assert not any(key in value for value in values)


def test_a_word_of_many_memories_is_counted(opened: Open) -> None:
    memory = opened()
    for number in range(COMMON + 6):
        memory.store(f"Part {number} of the loom lies in shelf {number}.")
    found = memory.recall("In which shelf of the loom lies part 7?")
    assert found is not None
    assert "shelf 7." in found.block


def test_what_is_no_key_is_told(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", "secret")
    with pytest.raises(StoreUnavailableError, match="64 hex digits"):
        opened()


def test_no_row_is_seen_without_a_tenant_and_none_of_another(opened: Open, server: Server) -> None:
    opened("one").store(FACT)
    opened("two", store_tenant="somebody else").store("The printer is called Otto.")
    with psycopg.connect(server.url) as connection:
        tables = [name for (name,) in connection.execute(
            "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'tenant'"
            " WHERE relkind = 'r'"
        ).fetchall()]  # fmt: skip
        assert len(tables) > 15
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)], table
        connection.execute("SELECT set_config('perdure.tenant', 'somebody else', true)")
        assert connection.execute("SELECT text FROM facts").fetchall() == [("The printer is called Otto.",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO meta VALUES ('key', 'value', 'a third')")


@settings(max_examples=60, deadline=None)
@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60))
def test_a_tenant_of_any_name_sees_its_own_alone(
    server: Server, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("tenant")
    database = PostgresDatabase(server.url, name, folder)
    try:
        with database.write() as connection:
            put_meta(connection, "mine", name)
        with database.read() as connection:
            assert run(connection, "SELECT value FROM meta WHERE key = 'mine'") == [(name,)]
            assert len(run(connection, "SELECT DISTINCT tenant FROM meta")) == 1
    finally:
        database.close()


def test_writers_of_one_slot_leave_one_value_and_a_whole_chain(same_key: None, opened: Open) -> None:
    memories = [opened(f"machine{number}") for number in range(4)]

    def correct(memory: Memory, writer: int) -> None:
        for number in range(10):
            memory.store(f"The port is {writer}{number}.", entity="server", key="port", value=f"{writer}{number}")

    threads = [threading.Thread(target=correct, args=(memory, at)) for at, memory in enumerate(memories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [fact.key for fact in memories[0].admin.list()] == ["port"]
    assert memories[0].admin.verify() == []


def test_what_is_said_while_the_server_is_away_is_there_when_it_is_back(opened: Open, server: Server) -> None:
    memory = opened()
    memory.store("The printer is called Otto.")
    server.stop()
    try:
        assert memory.turns.before("What is the printer called?", TurnContext(session_id="s1")) is None
        assert memory.turns.after([{"role": "user", "content": FACT}], True, TurnContext(session_id="s1")) == 1
    finally:
        server.start()

    assert until(lambda: _texts(memory) == ["The printer is called Otto.", FACT])


def test_a_turn_does_not_wait_for_a_server_that_answers_nothing(opened: Open, server: Server) -> None:
    memory = opened()
    memory.store("The printer is called Otto.")
    turn = TurnContext(session_id="s1")
    with server.frozen():
        assert memory.turns.before("What is the printer called?", turn) is None
        assert memory.turns.after([{"role": "user", "content": FACT}], True, turn) == 1
        with pytest.raises(StoreUnavailableError):
            opened("one more")
    assert until(lambda: _texts(memory) == ["The printer is called Otto.", FACT])


def _texts(memory: Memory) -> list[str]:
    with suppress(StoreUnavailableError):  # nobody is kept waiting for a server that was away a moment ago
        return sorted(fact.text for fact in memory.admin.list())
    return []


def test_a_process_that_starts_while_the_server_is_away_keeps_what_is_said(
    same_key: None, opened: Open, server: Server, tenant: str, tmp_path: Path
) -> None:
    runner = HookRunner()
    runner.register(
        hookimpls_for(home=tmp_path / "one", store_url=server.url, store_tenant=tenant, embedder="none", timers=False)
    )
    turn = TurnContext(session_id="s1")
    server.stop()
    try:
        assert runner.before_agent_start("What is the staging database called?", [], turn) == ()
        runner.agent_end([{"role": "user", "content": FACT}], True, turn)
        runner.host_stopping(turn)
    finally:
        server.start()
    memory = opened("one")
    assert until(lambda: _texts(memory) == [FACT])


def test_writers_that_wait_keep_nobody_from_reading(
    same_key: None, opened: Open, server: Server, tenant: str, tmp_path: Path
) -> None:
    memory = opened()
    memory.store(FACT)
    other = PostgresDatabase(server.url, tenant, tmp_path)
    threads = [threading.Thread(target=memory.store, args=(f"Part {at} is in shelf {at}.",)) for at in range(6)]
    with other.write():
        for thread in threads:
            thread.start()
        found = memory.recall("What is the staging database called?")
        assert found is not None
        assert _texts(memory) == [FACT]
    for thread in threads:
        thread.join()
    other.close()
    assert len(_texts(memory)) == 7


def test_who_opens_a_database_that_is_up_to_date_waits_for_no_lock_of_its_schema(opened: Open, server: Server) -> None:
    opened("one").close()
    with psycopg.connect(server.url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (MIGRATION,))
        opened("one")


def test_a_later_step_is_done_once_and_refused_by_who_does_not_know_it(
    same_key: None, opened: Open, server: Server, tmp_path: Path
) -> None:
    step = tmp_path / "later.sql"
    step.write_text("CREATE TABLE later (id text); INSERT INTO later VALUES ('100 %')")
    url = server.database("later")
    opened("one", store_url=url).store(FACT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "STEPS", (*migrate.STEPS, step))
        for _ in range(2):
            assert _texts(opened("two", store_url=url)) == [FACT]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT id FROM later").fetchall() == [("100 %",)]
    known = len(migrate.STEPS)
    with pytest.raises(StoreTooNewError, match=f"schema {known + 1}, this perdure supports up to {known}"):
        opened("three", store_url=url)


def test_a_database_of_before_the_first_release_is_refused(opened: Open, server: Server) -> None:
    url = server.database("before")
    opened("one", store_url=url).close()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE perdure_steps (step integer)")
    with pytest.raises(StoreUnavailableError, match="before perdure's first release"):
        opened("two", store_url=url)


def test_of_several_servers_the_one_that_takes_writes_is_opened(
    same_key: None, opened: Open, server: Server, tenant: str
) -> None:
    with running() as standby:
        with psycopg.connect(standby.as_("postgres", "postgres"), autocommit=True) as connection:
            connection.execute("ALTER DATABASE perdure SET default_transaction_read_only = on")
        memory = opened(store_url=f"postgresql://perdure@127.0.0.1:{standby.port},127.0.0.1:{server.port}/perdure")
        memory.store(FACT)
    assert _texts(opened("other")) == [FACT]


def test_a_role_that_sees_all_tenants_is_refused(opened: Open, server: Server) -> None:
    opened().store(FACT)
    with pytest.raises(StoreUnavailableError, match="is a superuser"):
        opened("other", store_url=server.as_("postgres", "perdure"))


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_tenant_has_a_name(server: Server, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="not a valid name"):
        PostgresDatabase(server.url, name, tmp_path)


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter%zz2@127.0.0.1/d", "postgrsql://u:hunter2@127.0.0.1/d", "host=h password=hunter2"]
)
def test_what_is_no_address_is_not_told(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match="write postgresql://") as failed:
        PostgresDatabase(url, "t", tmp_path)
    told: BaseException | None = failed.value
    while told is not None:
        assert "hunter" not in str(told)
        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)


def test_the_address_is_told_to_nobody(opened: Open, server: Server, tmp_path: Path) -> None:
    memory = opened()
    url = server.url.replace("//perdure@", "//perdure:hunter2@") + "_that_is_not_there"
    assert "hunter2" not in repr(memory._engine.settings.model_copy(update={"store_url": url}))
    with pytest.raises(StoreUnavailableError) as failed:
        PostgresDatabase(url, "t", tmp_path)
    assert "hunter2" not in str(failed.value)


def test_the_doctor_looks_at_the_server(
    same_key: None, opened: Open, server: Server, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened("one").store(FACT)
    monkeypatch.setenv("PERDURE_STORE_URL", server.url)
    monkeypatch.setenv("PERDURE_STORE_TENANT", tenant)
    monkeypatch.setenv("PERDURE_EMBEDDER", "none")
    found = {each.name: each for each in examine(tmp_path / "one")}
    assert found["server"].state.startswith("PostgreSQL 18")
    assert "with pgvector" in found["server"].state
    assert not found["server"].wrong
    assert found["store"].state.startswith("1 memory")
    server.stop()
    try:
        [told] = [each for each in examine(tmp_path / "one") if each.name == "store"]
    finally:
        server.start()
    assert told.wrong
    assert "cannot be reached" in told.state
