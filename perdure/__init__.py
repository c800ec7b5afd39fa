"""perdure: long-term memory that just works, for AI agents."""

from __future__ import annotations

from importlib import import_module

from perdure import telemetry

TYPE_CHECKING = False
"""What type checkers take for true. Importing `typing` would take longer than all the rest."""

if TYPE_CHECKING:
    from typing import Any

    from perdure.api.admin import Admin
    from perdure.api.aliases import Aliases
    from perdure.api.assign import Assigned
    from perdure.api.async_memory import (
        AsyncAdmin,
        AsyncAliases,
        AsyncFiles,
        AsyncMemory,
        AsyncMemoryView,
        AsyncProposals,
        AsyncTurns,
        AsyncUpkeep,
    )
    from perdure.api.audit import Audit
    from perdure.api.evaluate import Evaluation
    from perdure.api.explain import Why
    from perdure.api.fact_search import Hit
    from perdure.api.files import Files, FilesStatus, FlushRequest
    from perdure.api.inbox import InboxTurn
    from perdure.api.memory import Memory
    from perdure.api.status import Status
    from perdure.api.stored import Outcome, Stored
    from perdure.api.turn_history import PastTurn
    from perdure.api.turns import Turns
    from perdure.api.upkeep import Proposals, Upkeep
    from perdure.api.view import MemoryView
    from perdure.clock import Clock
    from perdure.consolidation.checkpoints import Checkpoint
    from perdure.consolidation.classify import Classified
    from perdure.consolidation.consolidate import Consolidated
    from perdure.consolidation.distill import Distilled
    from perdure.consolidation.proposals import Proposal
    from perdure.consolidation.reflect import Reflected
    from perdure.engine.extensions import hookimpl
    from perdure.engine.file_purge import Scrubbed
    from perdure.errors import (
        AmbiguousIdError,
        InputError,
        NotFoundError,
        PerdureError,
        ScopeError,
        SettingsError,
        StoreError,
    )
    from perdure.files.index import Synced
    from perdure.files.roots import Reading
    from perdure.files.search import Answer
    from perdure.hooks.types import Channel, Opening, OpeningItem, PromptSection, Recall, RecallItem, TurnContext
    from perdure.llm import LanguageModel
    from perdure.maintenance.exchange import Exported
    from perdure.maintenance.importing import Imported
    from perdure.maintenance.purge import Purge
    from perdure.plugin.plugin import hookimpls_for
    from perdure.recall.options import RecallOptions
    from perdure.recall.receipt import Receipt
    from perdure.store.expiry import Pruned
    from perdure.store.fact import Fact
    from perdure.store.finding import Finding
    from perdure.store.history import Change, History, Replacement
    from perdure.store.links import Link, Related
    from perdure.store.listing import Filter, Page, State, Stats
    from perdure.store.schedule import JobState
    from perdure.store.scope import Audience, Scope
    from perdure.store.triggers import Trigger
    from perdure.store.undo import Undone

# Before anything here can import the library that it is about.
telemetry.turn_off()

_NAMES = {
    "api.admin": "Admin",
    "api.aliases": "Aliases",
    "api.assign": "Assigned",
    "api.async_memory": "AsyncAdmin AsyncAliases AsyncFiles AsyncMemory AsyncMemoryView AsyncProposals AsyncTurns"
    " AsyncUpkeep",
    "api.audit": "Audit",
    "api.evaluate": "Evaluation",
    "api.explain": "Why",
    "api.fact_search": "Hit",
    "api.files": "Files FilesStatus FlushRequest",
    "api.inbox": "InboxTurn",
    "api.memory": "Memory",
    "api.status": "Status",
    "api.stored": "Outcome Stored",
    "api.turn_history": "PastTurn",
    "api.turns": "Turns",
    "api.upkeep": "Proposals Upkeep",
    "api.view": "MemoryView",
    "clock": "Clock",
    "consolidation.checkpoints": "Checkpoint",
    "consolidation.classify": "Classified",
    "consolidation.consolidate": "Consolidated",
    "consolidation.distill": "Distilled",
    "consolidation.proposals": "Proposal",
    "consolidation.reflect": "Reflected",
    "engine.extensions": "hookimpl",
    "engine.file_purge": "Scrubbed",
    "errors": "AmbiguousIdError InputError NotFoundError PerdureError ScopeError SettingsError StoreError",
    "files.index": "Synced",
    "files.roots": "Reading",
    "files.search": "Answer",
    "hooks.types": "Channel Opening OpeningItem PromptSection Recall RecallItem TurnContext",
    "llm": "LanguageModel",
    "maintenance.exchange": "Exported",
    "maintenance.importing": "Imported",
    "maintenance.purge": "Purge",
    "plugin.plugin": "hookimpls_for",
    "recall.options": "RecallOptions",
    "recall.receipt": "Receipt",
    "store.expiry": "Pruned",
    "store.fact": "Fact",
    "store.finding": "Finding",
    "store.history": "Change History Replacement",
    "store.links": "Link Related",
    "store.listing": "Filter Page State Stats",
    "store.schedule": "JobState",
    "store.scope": "Audience Scope",
    "store.triggers": "Trigger",
    "store.undo": "Undone",
}
"""What each module gives, of all that stands in a public signature."""
_HOMES = {name: f"perdure.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Admin", "Aliases", "AmbiguousIdError", "Answer", "Assigned", "AsyncAdmin", "AsyncAliases", "AsyncFiles",
    "AsyncMemory", "AsyncMemoryView", "AsyncProposals", "AsyncTurns", "AsyncUpkeep", "Audience", "Audit", "Change",
    "Channel", "Checkpoint", "Classified", "Clock", "Consolidated", "Distilled", "Evaluation", "Exported", "Fact",
    "Files", "FilesStatus", "Filter", "Finding", "FlushRequest", "History", "Hit", "Imported", "InboxTurn",
    "InputError", "JobState", "LanguageModel", "Link", "Memory", "MemoryView", "NotFoundError", "Opening",
    "OpeningItem", "Outcome", "Page", "PastTurn", "PerdureError", "PromptSection", "Proposal", "Proposals", "Pruned",
    "Purge", "Reading", "Recall", "RecallItem", "RecallOptions", "Receipt", "Reflected", "Related", "Replacement",
    "Scope", "ScopeError", "Scrubbed", "SettingsError", "State", "Stats", "Status", "StoreError", "Stored", "Synced",
    "Trigger", "TurnContext", "Turns", "Undone", "Upkeep", "Why", "hookimpl", "hookimpls_for",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def __getattr__(name: str) -> Any:
    # Loaded at first use: importing perdure costs a host almost nothing.
    if name == "__version__":
        from importlib.metadata import version

        return version("perdure")
    if name not in _HOMES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
