"""Runs many tenants through PgBouncer in transaction mode, and looks for rows that were seen by somebody else.

python -m bench tenants --tenants 1000 --scopes 10000 --json

All share two connections to the server. Every tenant keeps a row and a memory of its own and reads in between, in a
random order. Then memories of as many scopes, with names as odd as they come, are asked for one by one.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import psycopg

from bench.program import program
from perdure.postgres.database import PostgresDatabase
from perdure.store.scope import Audience, Scope
from perdure.store.search import View
from perdure.store.sql import put_meta, run
from tests.postgres.server import pooled, running

CONNECTIONS = 2
AT_ONCE = 8
ROUNDS = 3
SEED = 11
SIGNS = "aZ0_-.:/\\'\"%*?;() \t\u00e9\u0661\u4e2d\u202e\ufeff\U0001f600\u0000"


def interleaved(url: str, folder: Path, tenants: int) -> dict[str, int]:
    """Have tenants write and read through the pooler; return how much was seen that was not theirs."""
    seen = {"reads": 0, "foreign": 0}
    lock = threading.Lock()

    def work(names: Sequence[str]) -> None:
        opened = [PostgresDatabase(url, name, folder) for name in names]
        chance = random.Random(names[0])
        for _ in range(ROUNDS):
            for name, database in chance.sample(list(zip(names, opened, strict=True)), len(names)):
                with database.write() as connection:
                    put_meta(connection, "mine", name)
                    columns = "id, text, created_at, normalized_hash"
                    sql = f"INSERT INTO facts ({columns}) VALUES ('one', ?, 0.0, '') ON CONFLICT DO NOTHING"
                    run(connection, sql, (f"of {name}",))
                with database.read() as connection:
                    rows = run(connection, "SELECT key, value, tenant FROM meta WHERE key = 'mine'")
                    rows += run(connection, "SELECT id, text, tenant FROM facts")
                with lock:
                    seen["reads"] += 1
                    seen["foreign"] += rows != [("mine", name, name), ("one", f"of {name}", name)]
        for database in opened:
            database.close()

    names = [f"tenant {number}" for number in range(tenants)]
    random.Random(SEED).shuffle(names)
    groups = [names[at : at + 10] for at in range(0, tenants, 10)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(work, groups))
    return seen


def unnamed(url: str) -> int:
    """Return how many rows are seen by who names no tenant."""
    with psycopg.connect(url, prepare_threshold=None) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'tenant'"
            " WHERE relkind = 'r'"
        ).fetchall()
        return sum(connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for (name,) in tables)


def odd_names(count: int) -> list[str]:
    """Return distinct names of up to twelve characters."""
    chance = random.Random(SEED)
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(chance.choices(SIGNS, k=chance.randint(1, 12)))] = None
    return list(names)


def scoped(url: str, folder: Path, scopes: int) -> dict[str, int]:
    """Keep a memory for each of many users, and ask for each; return what came that was not theirs."""
    taken: dict[Scope, str] = {}
    refused = 0
    for name in odd_names(scopes):
        own = Audience.of(user=name).scopes - Audience.of().scopes
        refused += not own
        taken |= dict.fromkeys(own, name)
    database = PostgresDatabase(url, "scopes", folder)
    found = foreign = 0
    with database.write() as connection:
        connection.executemany(
            "INSERT INTO facts (id, text, created_at, normalized_hash, scope, scope_target) VALUES (?, ?, ?, ?, ?, ?)",
            [(f"{at:08d}", f"of {scope}", 0.0, "", scope.kind, scope.target) for at, scope in enumerate(taken)],
        )
    with database.read() as connection:
        for scope, name in taken.items():
            condition, values = View(Audience.of(user=name), 1.0).sql(database.dialect)
            rows = run(connection, f"SELECT facts.scope, facts.scope_target FROM facts WHERE {condition}", values)
            found += rows == [(scope.kind, scope.target)]
            foreign += sum(row != (scope.kind, scope.target) for row in rows)
    database.close()
    return {"scopes": scopes, "refused": refused, "kept": len(taken), "found": found, "foreign": foreign}


@click.option("--tenants", default=1_000)
@click.option("--scopes", default=10_000)
def bench(tenants: int, scopes: int) -> dict[str, Any]:
    """Do all of it."""
    with running() as server, pooled(server, CONNECTIONS) as url, tempfile.TemporaryDirectory() as root:
        PostgresDatabase(server.url, "first", Path(root)).close()
        return {
            "tenants": tenants, "connections": CONNECTIONS, **interleaved(url, Path(root), tenants),
            "without_a_tenant": unnamed(url), "names": scoped(url, Path(root), scopes),
        }  # fmt: skip


def _failed(result: Mapping[str, Any]) -> bool:
    names = result["names"]
    seen = result["foreign"] or result["without_a_tenant"] or names["foreign"]
    return bool(seen) or names["found"] != names["kept"]


main = program(bench, failed=_failed)
