"""What a memory does about itself: merging, reflecting, distilling, proposing; and an agent's checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perdure.api.facade import Facade
from perdure.consolidation import checkpoints
from perdure.consolidation.checkpoints import Checkpoint
from perdure.consolidation.consolidate import COSINE, Consolidated, consolidate
from perdure.consolidation.distill import Distilled, distill
from perdure.consolidation.proposals import Proposal, answer, proposals, propose
from perdure.consolidation.reflect import DAYS, OBSERVATIONS, Reflected, Window, reflect
from perdure.engine.file_memory import recordable
from perdure.errors import InputError
from perdure.hooks.types import Channel
from perdure.store.listing import Progress, no_progress
from perdure.store.scope import Audience
from perdure.store.search import View


class Upkeep(Facade):
    """Consolidation of one caller's memories. Obtained from `Memory.upkeep`."""

    def consolidate(
        self, *, cosine: float | None = None, dry_run: bool = False, progress: Progress = no_progress
    ) -> Consolidated:
        """Merge the caller's memories that say the same. The old ones stay for `as_of`; one undo restores all.

        Args:
            cosine: minimum similarity of two memories that may say the same, if their words do too; None: 0.92.
            dry_run: only return what would be done.
            progress: called with the number of groups compared and their total.

        Raises:
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        engine, home = self._engine, self._home()
        view = View(Audience(frozenset({home}), home), engine.clock.now())
        return consolidate(
            engine.store, view, self._author(), cosine=COSINE if cosine is None else cosine,
            dry_run=dry_run, pause=engine.gate.pause, progress=progress,
        )  # fmt: skip

    def reflect(
        self,
        *,
        days: float | None = None,
        observations: int | None = None,
        dry_run: bool = False,
        channel: Channel = Channel.LIBRARY,
    ) -> Reflected:
        """Find patterns in the caller's memories, and store each as quotations, linked to its evidence.

        Args:
            days: window in days that at least one memory of each pattern must fall in; None: 14.
            observations: minimum memories of a pattern, from at least two days; None: 2.
            dry_run: only return what would be done.
            channel: where the request comes from.

        Raises:
            InputError: a value is out of range.
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        engine, home = self._engine, self._home()
        window = Window(DAYS if days is None else days, OBSERVATIONS if observations is None else observations)
        return reflect(
            engine.store, home, self._author(channel), engine.writer, window,
            dry_run=dry_run, pause=engine.gate.pause,
        )  # fmt: skip

    def distill(self, *, dry_run: bool = False, progress: Progress = no_progress) -> Distilled:
        """Capture the caller's recorded conversations that were not captured when they took place; resumable.

        Args:
            dry_run: only count.
            progress: called with the number of conversations done and their total.

        Raises:
            ScopeError: the caller may not write.
            StoreError: it could not be written; calling again resumes.
        """
        engine, home = self._engine, self._home()
        return distill(
            engine.store, engine.writer, lambda: engine.rules, engine.files.sync.roots(), home,
            strip=recordable(engine.store), dry_run=dry_run, pause=engine.gate.pause, progress=progress,
        )  # fmt: skip

    def checkpoint(
        self, intent: str, state: str = "", expected: str = "", *, channel: Channel = Channel.LIBRARY
    ) -> Checkpoint:
        """Save what is about to be done, before risky work, for four hours.

        Args:
            intent: what is about to be done.
            state: where things stand.
            expected: the expected outcome.
            channel: where it comes from.

        Raises:
            InputError: the intent is empty, or a part has more than 20,000 characters.
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        engine, home = self._engine, self._home()
        return checkpoints.save(engine.store, engine.writer, home, self._author(channel), intent, state, expected)

    def checkpoints(self, limit: int = 20) -> Sequence[Checkpoint]:
        """Return the caller's checkpoints of the last four hours, newest first."""
        return checkpoints.saved(self._engine.store, self._home(), limit)

    def restore(self) -> Checkpoint:
        """Return the caller's newest checkpoint.

        Raises:
            NotFoundError: there is none from the last four hours.
        """
        return checkpoints.newest(self._engine.store, self._home())

    @property
    def proposals(self) -> Proposals:
        """Proposed lines for MEMORY.md."""
        return Proposals(self._engine, self._context)


class Proposals(Facade):
    """Proposed lines for MEMORY.md. Obtained from `Memory.upkeep.proposals`."""

    def find(self, *, dry_run: bool = False) -> Sequence[Proposal]:
        """Propose what was said three times or more; return new proposals. Nothing is written to a file.

        Raises:
            ScopeError: the caller may not write.
            StoreError: it could not be written.
        """
        store = self._engine.store
        return propose(store, self._home(), dry_run=dry_run or store.refusal is not None)

    def list(self, *, everything: bool = False) -> Sequence[Proposal]:
        """Return open proposals, oldest first; with `everything` also answered and expired ones."""
        return proposals(self._engine.store, self._home(), everything=everything)

    def accept(self, proposal_id: str) -> Proposal:
        """Write a proposal to MEMORY.md of the caller's workspace, in perdure's own section.

        Raises:
            InputError: there is no workspace, it was already answered, or the file cannot be changed.
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
            StoreError: it could not be written.
        """
        home = self._home()
        roots = self._engine.files.sync.roots(self._audience)
        known = (root.path for root in roots if root.kind == "workspace" and root.scope == home)
        folder = self._context.workspace or next(known, None)
        if folder is None:
            raise InputError("there is no workspace with a MEMORY.md; set workspace, or add one with files.add")
        return answer(self._engine.store, home, proposal_id, Path(folder))

    def refuse(self, proposal_id: str) -> Proposal:
        """Decline a proposal: it is not made again.

        Raises:
            InputError: it was already answered.
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        return answer(self._engine.store, self._home(), proposal_id, None)
