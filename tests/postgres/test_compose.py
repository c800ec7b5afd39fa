"""The compose file of the docs is one, keeps secrets out of settings, and makes a role that perdure can use."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from perdure import Memory
from perdure.engine.setting_sources import names_password
from perdure.engine.settings import Settings
from tests.postgres.server import Server, brought

FILE = Path(__file__).parents[2] / "docs" / "compose.yaml"
NAME = "composed"
"""Stands for `perdure` in the script, as the server of the tests has that role already."""


@pytest.fixture
def told() -> Any:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_the_services_fit_together_and_hold_no_secret(told: Any) -> None:
    assert set(told) == {"services", "configs", "secrets", "volumes"}
    assert set(told["services"]) == {"database", "agent"}
    for service in told["services"].values():
        assert {"image", "restart"} <= set(service)
        assert set(service["secrets"]) <= set(told["secrets"])
        assert {volume.split(":")[0] for volume in service["volumes"]} <= set(told["volumes"])
    agent, database = told["services"]["agent"], told["services"]["database"]
    assert agent["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert {each["source"] for each in database["configs"]} == set(told["configs"])
    assert database["healthcheck"]["test"][0] == "CMD"
    assert all(list(secret) == ["file"] for secret in told["secrets"].values())
    environment = {name: value for name, value in agent["environment"].items() if name != "PERDURE_HOME"}
    settings = Settings.load(environ=environment)
    assert settings.ack == "database"
    assert not names_password(settings.store_url or "")


def test_the_agent_does_not_get_the_password_of_the_superuser(told: Any) -> None:
    database, agent = (told["services"][name] for name in ("database", "agent"))
    own = database["environment"]["POSTGRES_PASSWORD_FILE"].removeprefix("/run/secrets/")
    assert own in database["secrets"]
    assert own not in agent["secrets"]


@pytest.mark.postgres
def test_the_script_makes_a_role_that_perdure_can_use(
    told: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = told["configs"]["role"]["content"].replace("$$", "$").replace("perdure", NAME)
    (tmp_path / "database_password").write_text("it's secret\n")
    programs = brought()
    assert programs is not None
    subprocess.run(
        ["sh", "-c", script.replace("/run/secrets", str(tmp_path))], check=True,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "PGHOST": "127.0.0.1", "PGPORT": str(server.port)},
    )  # fmt: skip
    with psycopg.connect(server.as_("postgres", NAME)) as connection:
        [(word, powers)] = connection.execute(
            "SELECT rolpassword, rolsuper OR rolbypassrls OR rolcreatedb FROM pg_authid WHERE rolname = %s", (NAME,)
        ).fetchall()
    assert word.startswith("SCRAM-SHA-256$")
    assert not powers
    monkeypatch.setenv("PERDURE_STORE_URL", server.as_(NAME, NAME))
    with Memory.open(tmp_path / "home", embedder="none", timers=False) as memory:
        memory.store("The staging database is called heron.")
        assert memory._engine.store.database.compares
