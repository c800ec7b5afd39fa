"""`perdure alias`: names of one thing, set, listed and removed."""

from __future__ import annotations

import pytest

from perdure.errors import InputError, NotFoundError
from tests.cli.calling import call, call_json

pytestmark = pytest.mark.usefixtures("home")


def test_a_name_is_set_listed_used_and_removed() -> None:
    assert "perdure alias add" in call("alias", "list").stdout
    [added] = call_json("alias", "add", "GitHub Actions", "GHA")["facts"]
    assert (added["entity"], added["key"], added["value"], added["channel"]) == (
        "GitHub Actions",
        "alias",
        "GHA",
        "cli",
    )
    assert call("alias", "list").stdout.splitlines()[1].split("\t")[1:3] == ["GitHub Actions", "GHA"]

    call("store", "The runners stand in Oslo.", "--entity", "GitHub Actions", "--key", "place", "--value", "Oslo")
    assert [fact["value"] for fact in call_json("lookup", "gha", "place")["facts"]] == ["Oslo"]
    assert "Alias: GitHub Actions is also called GHA." in call("recall", "Where is GHA?", "--explain").stdout

    assert [fact["id"] for fact in call_json("alias", "remove", "gha", "--dry-run")["aliases"]] == [added["id"]]
    assert len(call_json("alias", "list")["aliases"]) == 1
    assert "perdure undo" in call("alias", "remove", "GHA", "GitHub Actions").stdout
    assert call_json("alias", "list") == {"aliases": []}
    call("undo")
    assert len(call_json("alias", "list")["aliases"]) == 1


def test_what_is_no_name_or_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="are spellings of the same name"):
        call("alias", "add", "heron", "Heron")
    with pytest.raises(NotFoundError, match="'heron' has no alias"):
        call("alias", "remove", "heron")
