"""The types of `perdure.api.async_memory`, whose methods are made while the program runs, from those of `Memory`."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

from perdure.api.async_memory import TWINS, AsyncMemory

HEAD = '''\
"""The async twins of `Memory` and its parts, as type checkers see them."""

# Written by `python -m scripts.reference`; change the methods of `Memory`, not this page.

'''
TWIN = """\
TWINS: dict[type, type[Twin[Any]]]


class Twin(Generic[T]):
    inner: T
    def __init__(self, inner: T) -> None: ...
"""
WAYS = """\
    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
"""
KNOWN = {"typing": {"Any", "Generic", "Self", "TypeVar"}, "types": {"TracebackType"}}


def stub() -> str:
    """Return the file of types."""
    used: set[str] = set()
    parts = []
    for inner, twin in TWINS.items():
        above = "AsyncMemoryView[Memory]" if twin is AsyncMemory else f"Twin[{inner.__name__}]"
        above = "Twin[View]" if inner.__name__ == "MemoryView" else above
        members = [_member(each, used) for each in _members(inner)]
        body = "\n".join(f"    {line}" for each in members for line in each.splitlines())
        parts.append(f"\nclass {twin.__name__}({above}):\n{body}\n" + (WAYS if twin is AsyncMemory else ""))
    variables = 'T = TypeVar("T", covariant=True)\nView = TypeVar("View", bound=MemoryView)\n'
    return HEAD + "\n".join([_imports(used | {each.__name__ for each in TWINS}), variables, TWIN, *parts])


def _members(inner: type) -> Iterator[ast.FunctionDef]:
    for each in next(ast.iter_child_nodes(ast.parse(inspect.getsource(inner)))).__dict__["body"]:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and each.name != "open":
            yield each


def _member(method: ast.FunctionDef, used: set[str]) -> str:
    """Return the twin of a method, or of a property, which is as quickly had as the inner one."""
    told = ast.get_docstring(method)
    method.args.defaults = [ast.Constant(...) for _ in method.args.defaults]
    method.args.kw_defaults = [value and ast.Constant(...) for value in method.args.kw_defaults]
    returns = method.returns or ast.Constant(None)
    gives = ast.unparse(returns)
    part = next((twin.__name__ for inner, twin in TWINS.items() if inner.__name__ == gives), None)
    named = (method.args,) if part else (method.args, returns)
    used |= {node.id for each in named for node in ast.walk(each) if isinstance(node, ast.Name)}
    gives = f"{part}[{gives}]" if part == "AsyncMemoryView" else part or gives
    head = "@property\n" if method.decorator_list else ""
    kind = "def" if part else "async def"
    line = (told or "").splitlines()[0]
    return f'{head}{kind} {method.name}({ast.unparse(method.args)}) -> {gives}:\n    """{line}"""\n'


def _imports(used: set[str]) -> str:
    """Return the imports of the names that signatures use, as the modules of the inner classes have them."""
    found: dict[str, set[str]] = {module: set(names) for module, names in KNOWN.items()}
    for inner in TWINS:
        module = sys.modules[inner.__module__]
        tree = ast.parse(inspect.getsource(module))
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module=str(name), names=names) if name != "__future__":
                    found.setdefault(name, set()).update({each.name for each in names} & used)
                case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]) if name in used:
                    found.setdefault(module.__name__, set()).add(name)
    lines = [f"from {name} import {', '.join(sorted(names))}" for name, names in sorted(found.items()) if names]
    return "\n".join(lines) + "\n"
