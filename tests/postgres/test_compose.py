"""The compose file of the docs is one, and keeps secrets out of settings."""

from __future__ import annotations

from pathlib import Path

import yaml

from perdure.engine.setting_sources import from_environment, names_password
from perdure.engine.settings import Settings

FILE = Path(__file__).parents[2] / "docs" / "compose.yaml"


def test_the_services_fit_together_and_hold_no_secret() -> None:
    told = yaml.safe_load(FILE.read_text(encoding="utf-8"))
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
    settings = Settings(**from_environment(environment))
    assert settings.ack == "database"
    assert not names_password(settings.store_url or "")
    assert "SUPERUSER" not in told["configs"]["role"]["content"]
