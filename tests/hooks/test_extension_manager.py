"""Built-ins and entry points side by side, each isolated."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pluggy import HookimplMarker

from perdure.engine.extensions import KINDS, ExtensionManager, ExtensionProblem, Register, hookimpl
from perdure.errors import ExtensionError


class Builtin:
    """Registers the names it is given as embedders."""

    def __init__(self, *names: str) -> None:
        self.names = names

    @hookimpl
    def perdure_register_embedders(self, register: Register) -> None:
        for name in self.names:
            register(name, dict)


class BreaksLate:
    """Registers a host and an embedder, then fails."""

    @hookimpl
    def perdure_register_embedders(self, register: Register) -> None:
        register("late-embedder", dict)

    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        register("late-host", dict)
        raise LookupError("no such\nthing")


class WrongParameter:
    @hookimpl
    def perdure_register_embedders(self, registry: Register) -> None:
        registry("never", dict)


class UnknownHook:
    @hookimpl
    def perdure_register_hosts(self, register: Register) -> None:
        register("never", dict)

    @hookimpl
    def perdure_register_embeders(self, register: Register) -> None:
        register("never", dict)


class OtherProject:
    @HookimplMarker("another")
    def perdure_register_embedders(self, register: Register) -> None:
        register("never", dict)


class Anything:
    """Registers whatever it is given."""

    def __init__(self, name: object, factory: object) -> None:
        self.name = name
        self.factory = factory

    @hookimpl
    def perdure_register_rerankers(self, register: Register) -> None:
        register(self.name, self.factory)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def only_builtins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_LOAD_EXTENSIONS", "0")


def stages(extensions: ExtensionManager) -> list[tuple[str, str]]:
    return [(problem.name, problem.stage) for problem in extensions.problems]


def registered(extensions: ExtensionManager) -> dict[str, list[str]]:
    return {kind: sorted(getattr(extensions, kind)) for kind in KINDS if getattr(extensions, kind)}


def test_builtins_register_through_the_hooks() -> None:
    extensions = ExtensionManager.load(builtins=[("one", Builtin("a", "b"))])

    assert registered(extensions) == {"embedders": ["a", "b"]}
    assert extensions.get("embedders", "a") is dict
    assert extensions.problems == ()
    assert extensions.distributions == ()


def test_a_broken_extension_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "perdure.plugin"):
        extensions = ExtensionManager.load(builtins=[("broken", BreaksLate()), ("one", Builtin("a"))])

    assert registered(extensions) == {"embedders": ["a"]}
    assert extensions.problems == (ExtensionProblem("broken", "register", "LookupError: no such thing"),)
    assert [record.getMessage() for record in caplog.records] == [
        "extension 'broken' skipped at stage register: LookupError: no such thing"
    ]


@pytest.mark.parametrize("plugin", [WrongParameter(), UnknownHook()])
def test_hooks_that_do_not_fit_are_named(plugin: object) -> None:
    extensions = ExtensionManager.load(builtins=[("wrong", plugin), ("one", Builtin("a"))])

    assert stages(extensions) == [("wrong", "hooks")]
    assert registered(extensions) == {"embedders": ["a"]}


def test_an_unknown_hook_is_answered_with_the_known_ones() -> None:
    extensions = ExtensionManager.load(builtins=[("wrong", UnknownHook())])

    (problem,) = extensions.problems
    assert "perdure_register_embeders" in problem.error
    assert all(f"perdure_register_{kind}" in problem.error for kind in KINDS)


def test_the_earlier_of_two_names_stays() -> None:
    class Second(Builtin):
        @hookimpl
        def perdure_register_embedders(self, register: Register) -> None:
            register("fresh", list)
            register("a", list)

    extensions = ExtensionManager.load(builtins=[("first", Builtin("a")), ("second", Second())])

    assert stages(extensions) == [("second", "register")]
    assert dict(extensions.embedders) == {"a": dict}


def test_the_same_name_in_two_kinds_is_no_conflict() -> None:
    extensions = ExtensionManager.load(builtins=[("x", Builtin("a")), ("y", Anything("a", list))])

    assert registered(extensions) == {"embedders": ["a"], "rerankers": ["a"]}


def test_two_extensions_of_one_name_are_a_problem_of_the_later() -> None:
    extensions = ExtensionManager.load(builtins=[("same", Builtin("a")), ("same", Builtin("b"))])

    assert stages(extensions) == [("same", "hooks")]
    assert registered(extensions) == {"embedders": ["a"]}


@pytest.mark.parametrize(("name", "factory"), [("", dict), (3, dict), ("x", "not callable"), ("x", None)])
def test_what_cannot_be_registered_is_refused(name: object, factory: object) -> None:
    extensions = ExtensionManager.load(builtins=[("odd", Anything(name, factory))])

    assert stages(extensions) == [("odd", "register")]
    assert registered(extensions) == {}


def test_a_disabled_builtin_is_left_out() -> None:
    builtins = [("one", Builtin("a")), ("two", Builtin("b"))]

    assert registered(ExtensionManager.load(disabled=["one"], builtins=builtins)) == {"embedders": ["b"]}


def test_an_implementation_for_another_project_is_not_called() -> None:
    extensions = ExtensionManager.load(builtins=[("other", OtherProject())])

    assert registered(extensions) == {}
    assert extensions.problems == ()


def test_get_lists_the_known_names() -> None:
    extensions = ExtensionManager.load(builtins=[("one", Builtin("beta", "alpha"))])

    with pytest.raises(ExtensionError, match="'gamma' is not among the embedders; available: alpha, beta"):
        extensions.get("embedders", "gamma")
    with pytest.raises(ExtensionError, match="available: none"):
        extensions.get("hosts", "gamma")
    with pytest.raises(ExtensionError, match="embedders, rerankers, capture_rules, hosts"):
        extensions.get("embedder", "alpha")  # type: ignore[arg-type]


def test_the_mappings_cannot_be_written() -> None:
    extensions = ExtensionManager.load(builtins=[("one", Builtin("a"))])

    with pytest.raises(TypeError):
        extensions.embedders["b"] = dict  # type: ignore[index]


def distribution(folder: Path, name: str, entry_points: str, **modules: str) -> None:
    """Write a distribution as an installer leaves it."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[perdure]\n{entry_points}\n")
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(source)


GOOD = """
from perdure.engine.extensions import hookimpl
@hookimpl
def perdure_register_hosts(register):
    register(__name__, dict)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("PERDURE_LOAD_EXTENSIONS")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_extension_that_exits_at_import_does_not_stop_the_start(site: Path) -> None:
    exits = {"exits_at_import": "raise SystemExit(3)", "good_beside": GOOD}
    distribution(site, "exits", "a-exits = exits_at_import\nb-good = good_beside", **exits)
    distribution(site, "absent", "c-absent = module_that_is_absent\nd-attribute = good_beside:absent")

    extensions = ExtensionManager.load()

    assert stages(extensions) == [("a-exits", "import"), ("c-absent", "import"), ("d-attribute", "import")]
    assert registered(extensions) == {"hosts": ["good_beside"]}
    assert extensions.distributions == (("exits", "1.0"),)


def test_a_distribution_counts_as_loaded_only_if_it_registered(site: Path) -> None:
    distribution(site, "taken", "taken = taken_host", taken_host=GOOD)

    extensions = ExtensionManager.load(builtins=[("own", Builtin("a")), ("taken", Builtin("b"))])

    assert stages(extensions) == [("taken", "hooks")]
    assert extensions.distributions == ()


def test_damaged_metadata_of_any_distribution_does_not_stop_the_start(site: Path) -> None:
    distribution(site, "damaged", "this line is no entry point")

    extensions = ExtensionManager.load(builtins=[("one", Builtin("a"))])

    assert stages(extensions) == [("entry points", "discover")]
    assert registered(extensions) == {"embedders": ["a"]}
