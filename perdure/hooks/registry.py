"""What a plugin manager needs so that one plugin cannot disturb the others."""

from __future__ import annotations

from collections.abc import Mapping

from pluggy import HookImpl, PluginManager

from perdure.errors import ExtensionError


def register_plugin(manager: PluginManager, plugin: object, name: str | None = None) -> str | None:
    """Register a plugin completely or not at all.

    `plugin`: a module or an object with hook implementations; `name`: None for its `__name__`, or its id if it has
    none. Returns the name under which it is registered; None if the manager blocks that name.
    """
    if plugin is None:
        raise ExtensionError(f"plugin {name!r} is None; give a module or an object")
    name = name or manager.get_canonical_name(plugin)
    if manager.has_plugin(name):
        raise ExtensionError(f"a plugin named {name!r} is already registered; choose another name")
    if manager.is_registered(plugin):
        earlier = manager.get_name(plugin)
        raise ExtensionError(f"plugin {name!r} is already registered, as {earlier!r}; register it once")
    try:
        registered = manager.register(plugin, name)
        _check(manager, plugin)
    except Exception as error:
        # Some versions of pluggy keep what they read before the fault, or run a plugin's properties.
        if manager.is_registered(plugin):
            manager.unregister(plugin)
        reason = " ".join(str(error).split())
        raise ExtensionError(f"plugin {name!r} cannot be registered: {reason}") from error
    return registered


def implementations(manager: PluginManager, hook: str, plugin: object = None) -> list[HookImpl]:
    """Return the implementations of a hook in pluggy's order of calling, the latest registered first.

    `plugin`: only those of this plugin; None for all.
    """
    found = getattr(manager.hook, hook).get_hookimpls()
    return [impl for impl in reversed(found) if plugin is None or impl.plugin is plugin]


def call(implementation: HookImpl, arguments: Mapping[str, object]) -> object:
    """Call one implementation with those of the arguments that it takes, and return what it returns."""
    return implementation.function(*(arguments[name] for name in implementation.argnames))


def _check(manager: PluginManager, plugin: object) -> None:
    for caller in manager.get_hookcallers(plugin) or ():
        for impl in implementations(manager, caller.name, plugin):
            if not caller.has_spec() and not impl.optionalhook:
                known = ", ".join(name for name, hook in vars(manager.hook).items() if hook.has_spec())
                raise ExtensionError(f"there is no hook {caller.name}; known hooks: {known}")
            # Each plugin is called on its own, so there is nothing that a wrapper could wrap.
            if impl.wrapper or impl.hookwrapper:
                raise ExtensionError(f"its {caller.name} is a wrapper; use a plain implementation")
