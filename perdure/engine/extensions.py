"""perdure's own extension points: embedders, rerankers, capture rules and hosts from other distributions.

An extension is a module or an object with hook implementations, offered in the entry-point group "perdure":

    from perdure.engine.extensions import hookimpl

    @hookimpl
    def perdure_register_embedders(register):
        register("my-embedder", lambda settings: MyEmbedder(settings.embedder_model))
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, get_args

import pluggy

from perdure.errors import ExtensionError
from perdure.hooks.registry import call, implementations, register_plugin

PROJECT = "perdure"
ENTRY_POINT_GROUP = "perdure"
LOAD_VARIABLE = "PERDURE_LOAD_EXTENSIONS"

UNOFFERED = frozenset({"hash"})
"""What is there for tests: it can be named, and no message offers it."""

Kind = Literal["embedders", "rerankers", "capture_rules", "hosts"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Stage = Literal["discover", "import", "hooks", "register"]
Factory = Callable[..., Any]

hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks the hook implementations of an extension."""

_hookspec = pluggy.HookspecMarker(PROJECT)
_log = logging.getLogger("perdure.plugin")


class Register(Protocol):
    """The function that an extension registers with."""

    def __call__(self, name: str, factory: Factory) -> None:
        """Register a factory under a name that is new within its kind.

        Raises:
            ExtensionError: the name is taken or empty, or the factory cannot be called.
        """
        ...


class ExtensionHooks:
    """The hooks that an extension may implement, one for each kind of thing."""

    @_hookspec
    def perdure_register_embedders(self, register: Register) -> None:
        """Register factories `(settings) -> Embedder`, see `perdure.embed.base`."""

    @_hookspec
    def perdure_register_rerankers(self, register: Register) -> None:
        """Register factories `() -> Reranker`, see `perdure.recall.pipeline`."""

    @_hookspec
    def perdure_register_capture_rules(self, register: Register) -> None:
        """Register factories `() -> CaptureRule`, see `perdure.capture.statements`."""

    @_hookspec
    def perdure_register_hosts(self, register: Register) -> None:
        """Register factories of hosts, with whatever arguments the host takes."""


@dataclass(frozen=True, slots=True)
class ExtensionProblem:
    """Why an extension was skipped.

    Attributes:
        name: the extension's name.
        stage: "discover" (no entry point could be read), "import", "hooks" (its implementations do not fit)
            or "register" (it raised while it registered, or a name was taken).
        error: type and message of the error, on one line.
    """

    name: str
    stage: Stage
    error: str


class ExtensionManager:
    """Everything that built-ins and extensions have registered. Created by `load`."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(ExtensionHooks)
        self._factories: dict[Kind, dict[str, Factory]] = {kind: {} for kind in KINDS}
        self._problems: list[ExtensionProblem] = []
        self._distributions: set[tuple[str, str]] = set()

    @classmethod
    def load(cls, *, disabled: Collection[str] = (), builtins: Sequence[tuple[str, object]] = ()) -> ExtensionManager:
        """Register the built-ins, then the installed extensions in the order of their names.

        An extension that fails is skipped with everything it registered: it adds one entry to `problems` and one
        log line. The environment variable PERDURE_LOAD_EXTENSIONS=0 leaves only the built-ins.

        Args:
            disabled: names to skip; such an extension is not even imported.
            builtins: names and plugin objects of perdure's own.
        """
        extensions = cls()
        for name, plugin in builtins:
            if name not in disabled:
                extensions._add(name, plugin)
        if os.environ.get(LOAD_VARIABLE) != "0":
            for entry in extensions._discover():
                if entry.name not in disabled:
                    extensions._add_entry_point(entry)
        return extensions

    @property
    def embedders(self) -> Mapping[str, Factory]:
        """The factories of embedders by name."""
        return MappingProxyType(self._factories["embedders"])

    @property
    def rerankers(self) -> Mapping[str, Factory]:
        """The factories of rerankers by name."""
        return MappingProxyType(self._factories["rerankers"])

    @property
    def capture_rules(self) -> Mapping[str, Factory]:
        """The factories of capture rules by name."""
        return MappingProxyType(self._factories["capture_rules"])

    @property
    def hosts(self) -> Mapping[str, Factory]:
        """The factories of hosts by name."""
        return MappingProxyType(self._factories["hosts"])

    @property
    def problems(self) -> tuple[ExtensionProblem, ...]:
        """The extensions that were skipped, and why."""
        return tuple(self._problems)

    @property
    def distributions(self) -> tuple[tuple[str, str], ...]:
        """Name and version of every distribution that a loaded extension came from, sorted."""
        return tuple(sorted(self._distributions))

    def get(self, kind: Kind, name: str) -> Factory:
        """Return the factory registered under a name.

        Args:
            kind: "embedders", "rerankers", "capture_rules" or "hosts".
            name: the registered name.

        Raises:
            ExtensionError: there is no such kind or name; the message lists the known ones.
        """
        if kind not in self._factories:
            raise ExtensionError(f"{kind!r} is not a kind of extension; known kinds: {', '.join(KINDS)}")
        try:
            return self._factories[kind][name]
        except KeyError:
            known = ", ".join(sorted(self._factories[kind].keys() - UNOFFERED)) or "none"
            raise ExtensionError(
                f"{name!r} is not among the {kind}; available: {known}."
                " Choose one of them or install the extension that provides it"
            ) from None

    def _discover(self) -> list[importlib.metadata.EntryPoint]:
        try:
            found = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
        except Exception as error:  # noqa: BLE001 - the metadata of any installed distribution may be damaged
            self._skip("entry points", "discover", error)
            return []
        return sorted(found, key=lambda entry: (entry.name, entry.value))

    def _add_entry_point(self, entry: importlib.metadata.EntryPoint) -> None:
        try:
            plugin = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code at import may raise anything
            self._skip(entry.name, "import", error)
            return
        if self._add(entry.name, plugin) and entry.dist is not None:
            # Both are None where a distribution has lost its metadata.
            self._distributions.add((entry.dist.name or entry.name, entry.dist.version or "unknown"))

    def _add(self, name: str, plugin: object) -> bool:
        try:
            register_plugin(self._manager, plugin, name)
        except ExtensionError as error:
            self._skip(name, "hooks", error)
            return False
        try:
            registered = self._collect(plugin)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one extension must not stop the start
            self._manager.unregister(plugin)
            self._skip(name, "register", error)
            return False
        for kind in KINDS:
            self._factories[kind] |= registered[kind]
        return True

    def _collect(self, plugin: object) -> dict[Kind, dict[str, Factory]]:
        registered: dict[Kind, dict[str, Factory]] = {kind: {} for kind in KINDS}
        for kind in KINDS:
            register = self._registrar(kind, registered[kind])
            for impl in implementations(self._manager, f"perdure_register_{kind}", plugin):
                call(impl, {"register": register})
        return registered

    def _registrar(self, kind: Kind, registered: dict[str, Factory]) -> Register:
        def register(name: str, factory: Factory) -> None:
            if not isinstance(name, str) or not name:
                raise ExtensionError(f"{name!r} is not a valid name for {kind}; use a non-empty string")
            if not callable(factory):
                raise ExtensionError(f"{name!r} ({kind}) is not callable; register a class or function")
            if name in registered or name in self._factories[kind]:
                raise ExtensionError(f"{name!r} is already registered in {kind}; choose another name")
            registered[name] = factory

        return register

    def _skip(self, name: str, stage: Stage, error: BaseException) -> None:
        described = " ".join(f"{type(error).__name__}: {error}".split())
        self._problems.append(ExtensionProblem(name, stage, described))
        _log.warning("extension %r skipped at stage %s: %s", name, stage, described)
