"""What the system prompt says about memory: how to recall, what MEMORY.md holds, and what is running."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.errors import InputError
from perdure.hooks.types import PromptSection as PromptSection
from perdure.secrets.redact import redact
from perdure.text.clean import clean
from perdure.text.lexicon import table

FULL = "full"
"""The prompt mode that has these sections. Sub-agents run with shorter prompts and have none."""
SHOWN_CHARS = 20_000
"""Characters of MEMORY.md that are shown at the most, some 5,000 tokens."""
_TEXTS = table("files", "prompts")
_CITATIONS: Mapping[str, str] = _TEXTS["citations"]
"""What the agent is told in each citation mode."""
_FIRST_KEYS = ("backend", "provider", "sources", "citations")


def prompt_sections(
    mode: str, *, search_tool: str = "memory_search", get_tool: str = "memory_get", citations: str = "auto",
    memory_md: str | None, max_chars: int = SHOWN_CHARS, runtime: Mapping[str, str],
) -> tuple[PromptSection, ...]:  # fmt: skip
    """Return the sections of the system prompt; the same values give the same bytes.

    `memory_md`: the text of MEMORY.md; None: there is none.
    """
    if citations not in _CITATIONS:
        raise InputError(f"citations is {citations!r}; choose one of {', '.join(_CITATIONS)}")
    if mode != FULL:
        return ()
    recall = _TEXTS["recall"].format(search=search_tool, get=get_tool, citations=_CITATIONS[citations])
    sections = [PromptSection("memory recall", recall)]
    if memory_md is not None and memory_md.strip():
        sections.append(PromptSection("project context", _TEXTS["context"] + _shown(memory_md, max_chars, get_tool)))
    if runtime:
        sections.append(PromptSection("runtime", _runtime_line(runtime)))
    return tuple(sections)


def _shown(memory_md: str, limit: int, get_tool: str) -> str:
    # Redacted before it is cut: half a secret may not look like one any more.
    text = redact(clean(memory_md.removeprefix("\ufeff"))).text.rstrip()
    if len(text) <= limit:
        return text
    shown = text[: max(0, text.rfind("\n", 0, limit + 1))]
    line = shown.count("\n") + 2
    if not shown.strip():
        shown = text[:limit]
        line = shown.count("\n") + 1
    # Redaction can only take lines away, so the rest of the file begins at this line or a little below it.
    note = f'[MEMORY.md continues: read the rest with {get_tool}, path "MEMORY.md", from {line}]'
    return f"{shown.rstrip()}\n\n{note}"


def _runtime_line(runtime: Mapping[str, str]) -> str:
    keys = [key for key in _FIRST_KEYS if key in runtime] + sorted(runtime.keys() - set(_FIRST_KEYS))
    return "Memory: " + ", ".join(f"{key}={' '.join(runtime[key].split())}" for key in keys)
