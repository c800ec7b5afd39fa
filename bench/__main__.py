"""Runs a bench by its name: python -m bench NAME. Without a name, lists them all."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path


def benches() -> dict[str, str]:
    """Return what each bench measures, by its name: the first line of its module, which is read and not imported."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if re.search(rf"python -m bench[ .]{path.stem}\b", said):
            found[path.stem] = said.partition("\n")[0]
    return found


def main(words: Sequence[str]) -> None:
    """Run the bench that is named first with the words that follow."""
    known = benches()
    if not words or words[0] in ("-h", "--help"):
        print("python -m bench NAME [--help]\n")
        print("\n".join(f"  {name:<15} {line}" for name, line in known.items()))
        return
    name = words[0]
    if name not in known:
        near = " or ".join(get_close_matches(name, known)) or "one of those that `python -m bench` lists"
        sys.exit(f"there is no bench {name!r}: did you mean {near}?")
    import_module(f"bench.{name}").main(list(words[1:]), prog_name=f"python -m bench {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
