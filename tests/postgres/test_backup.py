"""Backups of a shared store are the server's: who can make one, and that what it brings back is whole."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from perdure import Memory
from tests.postgres.server import ROLE, Server, brought, running, user
from tests.waiting import until

pytestmark = pytest.mark.postgres
FACT = "The staging database is called heron."


@pytest.fixture(autouse=True)
def same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_STORE_KEY", "ab" * 32)


@pytest.fixture
def url(server: Server, tenant: str) -> str:
    """A database of its own: a dump takes in all tenants."""
    return server.database(f"of_{tenant}")


def ran(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the server's."""
    programs = brought()
    assert programs is not None
    return subprocess.run([programs / program, *arguments], capture_output=True, text=True, check=False)


def opened(url: str, tenant: str, home: Path) -> Memory:
    return Memory.open(home, store_url=url, store_tenant=tenant, embedder="hash", timers=False)


def test_what_a_dump_brings_back_is_whole(server: Server, url: str, tenant: str, tmp_path: Path) -> None:
    for name in (tenant, f"{tenant} and another"):
        with opened(url, name, tmp_path / name) as memory:
            memory.store(FACT)
            memory.store("The port is 5432.", entity="server", key="port", value="5432")
            memory.store("The port is 6432.", entity="server", key="port", value="6432")
    dump = tmp_path / "perdure.dump"
    with psycopg.connect(server.as_("postgres", "postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE backup LOGIN BYPASSRLS IN ROLE pg_read_all_data")
    made = ran("pg_dump", "-Fc", "-f", dump, "-d", server.as_("backup", f"of_{tenant}"))
    assert made.returncode == 0, made.stderr
    copy = server.as_(ROLE, f"copy_of_{tenant}")
    ran("createdb", "--maintenance-db", server.as_("postgres", "postgres"), "-O", ROLE, f"copy_of_{tenant}")
    back = ran("pg_restore", "--exit-on-error", "-d", server.as_("postgres", f"copy_of_{tenant}"), dump)
    assert back.returncode == 0, back.stderr

    for name in (tenant, f"{tenant} and another"):
        with opened(copy, name, tmp_path / "another machine" / name) as memory:
            assert memory.admin.verify() == []
            assert sorted(fact.text for fact in memory.admin.list()) == ["The port is 6432.", FACT]
            found = memory.recall("What is the staging database called?")
            assert found is not None
            assert FACT in found.block
            memory.store("The printer is called Otto.")
            assert memory.admin.verify() == []


def test_the_role_of_perdure_makes_no_backup(url: str, tenant: str, tmp_path: Path) -> None:
    """It sees no row without a tenant. With the option that pg_dump names, it succeeds, and its file is empty."""
    with opened(url, tenant, tmp_path / "home") as memory:
        memory.store(FACT)
    assert "row-level security" in ran("pg_dump", "-d", url).stderr
    made = ran("pg_dump", "--enable-row-security", "-d", url)
    assert made.returncode == 0
    assert "COPY public.facts " in made.stdout
    assert "heron" not in made.stdout


def asked(server: Server, sql: str) -> str:
    """Ask as the superuser; return the answer."""
    with psycopg.connect(server.as_("postgres", "postgres"), autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return str(cursor.fetchall()[0][0]) if cursor.description else ""


def test_the_way_back_to_a_point_in_time_leads_to_a_whole_store(tenant: str, tmp_path: Path) -> None:
    with running() as server:
        data, base, log = (server._folder / name for name in ("data", "base", "archive"))
        log.mkdir()
        if owner := user():
            shutil.chown(log, owner)
        asked(server, "ALTER SYSTEM SET archive_mode = on")
        asked(server, f"ALTER SYSTEM SET archive_command = 'cp %p {log}/%f'")
        server.stop("fast")
        server.start()
        server._run("pg_basebackup", "-D", base, "-d", server.as_("postgres", "postgres"))
        with opened(server.url, tenant, tmp_path / "home") as memory:
            memory.store(FACT)
            moment = asked(server, "SELECT clock_timestamp()")
            memory.store("The printer is called Otto.")
        asked(server, "SELECT pg_switch_wal()")
        server.stop("fast")

        shutil.rmtree(data)
        base.rename(data)
        with (data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"restore_command = 'cp {log}/%f %p'\nrecovery_target_time = '{moment}'\n")
            settings.write("recovery_target_action = promote\n")
        (data / "recovery.signal").touch()
        server.start()
        assert until(lambda: asked(server, "SELECT pg_is_in_recovery()") == "False")
        with opened(server.url, tenant, tmp_path / "home") as memory:
            assert [fact.text for fact in memory.admin.list()] == [FACT]
            assert memory.admin.verify() == []
