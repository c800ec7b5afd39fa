"""Proposals for one caller: what MEMORY.md could say, once somebody agrees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perdure.consolidation.proposals import Proposal, answer, proposals, propose
from perdure.engine.engine import Engine, audience_of
from perdure.errors import InputError
from perdure.hooks.types import TurnContext
from perdure.store.scope import Scope


class Proposals:
    """Lines for MEMORY.md. Obtained as `Memory.upkeep.proposals`."""

    def __init__(self, engine: Engine, context: TurnContext) -> None:
        self._engine = engine
        self._context = context

    def find(self, *, dry_run: bool = False) -> Sequence[Proposal]:
        """Propose what was said three times or more; return what is new. Nothing is written into a file.

        Raises:
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        store = self._engine.store
        return propose(store, self._home(), dry_run=dry_run or store.refusal is not None)

    def list(self, *, everything: bool = False) -> Sequence[Proposal]:
        """Return what waits for an answer, oldest first; with `everything` also what has one, or ran out of time."""
        return proposals(self._engine.store, self._home(), everything=everything)

    def accept(self, proposal_id: str) -> Proposal:
        """Write a proposal into MEMORY.md of the caller's workspace, in a section of perdure's own.

        Raises:
            InputError: there is no workspace, it was answered already, or the file cannot be changed.
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
            StoreError: it could not be written.
        """
        home = self._home()
        roots = self._engine.files.sync.roots(audience_of(self._context))
        known = (root.path for root in roots if root.kind == "workspace" and root.scope == home)
        folder = self._context.workspace or next(known, None)
        if folder is None:
            raise InputError("there is no workspace with a MEMORY.md; set workspace, or add one with files.add")
        return answer(self._engine.store, home, proposal_id, Path(folder))

    def refuse(self, proposal_id: str) -> Proposal:
        """Refuse a proposal: it is not made again.

        Raises:
            InputError: it was answered already.
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        return answer(self._engine.store, self._home(), proposal_id, None)

    def _home(self) -> Scope:
        return audience_of(self._context).writable()
