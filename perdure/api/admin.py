"""Administration of a store, for the caller that a `Memory` was opened for."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.api import audit, inbox, review
from perdure.api.assign import Assigned, assign
from perdure.api.audit import Audit
from perdure.api.facade import Facade
from perdure.api.fact_search import Hit, search_facts
from perdure.api.inbox import InboxTurn
from perdure.consolidation import classify
from perdure.consolidation.classify import Classified
from perdure.engine.file_purge import Scrubbed
from perdure.engine.jobs import DAY, run_and_wait
from perdure.errors import AmbiguousIdError, InputError, NotFoundError, SettingsError
from perdure.maintenance.backup import backup
from perdure.maintenance.exchange import Exported, export
from perdure.maintenance.importing import Imported, bring_in
from perdure.maintenance.purge import Purge
from perdure.maintenance.verify import verify
from perdure.parts import part
from perdure.store import history, lifecycle, listing, receipts, search
from perdure.store.expiry import Pruned, prune
from perdure.store.fact import Fact
from perdure.store.finding import Finding
from perdure.store.history import Change, Replacement, replacements
from perdure.store.listing import Filter, Page, Progress, State, Stats, inventory, no_progress, states_of
from perdure.store.schedule import JobState
from perdure.store.scope import ALL_SCOPES, Scope
from perdure.store.triggers import Trigger, of
from perdure.text.pluralize import counted
from perdure.text.timestamps import Moment, moment

if TYPE_CHECKING:
    from perdure.api.evaluate import Evaluation
    from perdure.api.view import Named
    from perdure.vault.vault import Vault

CONVERSATION, TURN = 5_000, 300
"""Tokens that the librarian takes, by recorded days: for a question with 60 memories, and for each turn in it."""


class Admin(Facade):
    """Lists, counts and bulk changes. Obtained from `Memory.admin`."""

    def list(
        self,
        chosen: Filter = Filter(),  # noqa: B008 - frozen
        *,
        limit: int = 20,
        offset: int = 0,
        tag: str | None = None,
        as_of: Moment | None = None,
        include_superseded: bool = False,
    ) -> Sequence[Fact]:
        """Return memories, newest first.

        Args:
            chosen: which memories.
            limit: maximum number of results.
            offset: number of results to skip.
            tag: only memories with this tag.
            as_of: as of this time: a date, ISO 8601 or epoch seconds.
            include_superseded: include previous versions.

        Raises:
            InputError: limit or offset are out of range.
        """
        view = self._view(tag=tag, as_of=as_of, include_superseded=include_superseded)
        return self._engine.store.database.query(listing.list_facts, view, chosen, limit, offset)

    def inventory(
        self,
        chosen: Filter = Filter(),  # noqa: B008 - frozen
        *,
        states: Collection[State | str] = (),
        limit: int = 20,
        offset: int = 0,
        behind: str | None = None,
        tag: str | None = None,
        as_of: Moment | None = None,
        everyone: bool = False,
    ) -> Page:
        """Return a page of all memories, newest first, including hidden ones, each with the reason.

        Args:
            chosen: which memories.
            states: only these states, such as "pending" or "forgotten"; see `perdure.store.listing.State`.
            limit: maximum number of results.
            offset: number of results to skip.
            behind: cursor: id of the previous page's last memory, so that none is skipped or repeated.
            tag: only memories with this tag.
            as_of: only what was true at this time: a date, ISO 8601 or epoch seconds.
            everyone: every scope of the store, whoever may read it: for its owner.

        Raises:
            InputError: limit or offset are out of range, or there is no such state.
            NotFoundError, AmbiguousIdError: `behind` names no memory that may be seen.
        """
        view = replace(self._view(tag=tag, as_of=as_of), everything=as_of is None)
        if everyone:
            view = replace(view, audience=ALL_SCOPES)
        return self._engine.store.database.query(inventory, view, chosen, states_of(states), limit, offset, behind)

    def search(
        self,
        query: str,
        chosen: Filter = Filter(),  # noqa: B008 - frozen
        *,
        limit: int = 10,
        tag: str | None = None,
        as_of: Moment | None = None,
        include_superseded: bool = False,
    ) -> Sequence[Hit]:
        """Search all memories that the caller may read, best first; see `perdure.api.fact_search`.

        Args:
            query: what to search for.
            chosen: which memories.
            limit: maximum number of results.
            tag: only memories with this tag.
            as_of: as of this time: a date, ISO 8601 or epoch seconds.
            include_superseded: include previous versions.

        Raises:
            InputError: the query is empty, or the limit out of range.
        """
        view = self._view(tag=tag, as_of=as_of, include_superseded=include_superseded)
        return search_facts(self._engine, view, query, chosen, limit)

    def stats(self, chosen: Filter = Filter()) -> Stats:  # noqa: B008 - frozen
        """Count the memories that the caller may read and a filter chooses, by scope and category."""
        return self._engine.store.database.query(listing.stats, self._view(), chosen)

    def scopes(self) -> Mapping[str, int]:
        """Count the memories of every scope of the store, whoever may read it."""
        return self._engine.store.database.query(listing.scope_counts, self._engine.clock.now())

    def assign(self, scope: str, whose: str, *, sessions: Sequence[str] = (), dry_run: bool = False) -> Assigned:
        """Reassign the memories of an agent or a session to one of its users, or to all; see `perdure.api.assign`.

        For the owner of the folder: the caller's scope is not checked.

        Args:
            scope: the present scope, such as "agent:main".
            whose: the new owner: "user:alice", or "user:*" for all users of the agent.
            sessions: only memories of these conversations; none: all.
            dry_run: only count.

        Raises:
            ScopeError: the scope cannot be reassigned, or `whose` names nobody.
            StoreError: it could not be written; calling again resumes.
        """
        return assign(self._engine, self._author(), scope, whose, sessions, dry_run)

    def forget_many(self, chosen: Filter, *, dry_run: bool = False) -> int:
        """Forget all memories that match a filter; `undo` restores them.

        Args:
            chosen: which memories; it must name a scope or a date, so that no slip forgets everything.
            dry_run: only count them.

        Returns:
            How many match.

        Raises:
            InputError: the filter names neither a scope nor a date.
        """
        if chosen.scope is None and chosen.after is None and chosen.before is None:
            raise InputError("bulk forgetting needs a scope or a date; give scope, after or before")
        with self._engine.store.write(self._author()) as tx:
            ids = listing.matching_ids(tx.connection, self._view(include_superseded=True), chosen)
            for fact_id in ids if not dry_run else ():
                fact = tx.fact(fact_id)
                self._audience.writable(Scope(fact.scope, fact.scope_target))
                lifecycle.forget(tx, fact_id, "one of many")
        return len(ids)

    def review(self, limit: int = 100) -> Sequence[Fact]:
        """Return memories pending review, newest first: they are recalled only once approved.

        Raises:
            InputError: the limit is out of range.
        """
        return review.waiting(self._engine.store, self._view(), limit)

    def approve(self, *fact_ids: str, dry_run: bool = False) -> Sequence[Fact]:
        """Approve memories, so that they are recalled; see `perdure.api.review.decide`, as for `reject`."""
        return self._reviewed(fact_ids, review.APPROVED, dry_run)

    def reject(self, *fact_ids: str, dry_run: bool = False) -> Sequence[Fact]:
        """Reject memories, so that they are never recalled unasked."""
        return self._reviewed(fact_ids, review.REJECTED, dry_run)

    def replaced(self, since: Moment | None = None, limit: int = 100) -> Sequence[Replacement]:
        """Return what was replaced or withdrawn, and by what, latest first.

        Args:
            since: only at or after this time: a date, ISO 8601 or epoch seconds.
            limit: maximum number of results.

        Raises:
            InputError: the limit is out of range.
        """
        return self._engine.store.database.query(replacements, self._audience, moment(since), limit)

    def take_back(self, *fact_ids: str, dry_run: bool = False) -> Sequence[Fact]:
        """Restore replaced or withdrawn memories beside their replacements; see `perdure.api.review`."""
        return review.take_back(self._engine.store, self._audience, self._author(), fact_ids, dry_run)

    def audit(self, *, fix: bool | Collection[str] = False, progress: Progress = no_progress) -> Audit:
        """Find memories to clean up: duplicates, echoes, and those whose own text says that they are past.

        Args:
            fix: forget all of them, or those with these ids; `undo` with the result's batch restores them.
            progress: called with the number of memories checked and their total.

        Raises:
            ScopeError: the caller has no write access.
            StoreError: they could not be forgotten; nothing was changed.
        """
        return audit.audit(self._engine, self._audience, self._author(), fix=fix, progress=progress)

    def classify(self, *, dry_run: bool = False, progress: Progress = no_progress) -> Sequence[Classified]:
        """Give memories of the category "other" a better one; see `perdure.consolidation.classify`.

        Args:
            dry_run: only return what would be done.
            progress: called with the number of memories checked and their total.

        Raises:
            StoreError: it could not be written.
        """
        engine = self._engine
        return classify.classify(
            engine.store, self._audience, self._author(),
            pause=engine.gate.pause, own=engine.categories, dry_run=dry_run, progress=progress,
        )  # fmt: skip

    def purge(self, *fact_ids: str) -> Purge:
        """Remove memories from every file of the data folder; this cannot be undone.

        Args:
            fact_ids: ids of memories that the caller may change, or their first eight digits.

        Returns:
            The purge: "certified" by a byte search, or "pending" while another process has the store open.

        Raises:
            NotFoundError, AmbiguousIdError: see `perdure.errors`.
            ScopeError: one of them is not the caller's to change.
        """
        view = replace(self._view(), everything=True)
        return self._engine.purge(review.changeable(self._engine.store, view, fact_ids), self._author())

    def scrub(self, *, dry_run: bool = False) -> Scrubbed:
        """Remove from the whole store the secrets that the present redactor detects; this cannot be undone.

        It runs automatically at the first start after the redactor has been extended.

        Args:
            dry_run: only return what would be changed.

        Raises:
            StoreError: something could not be written.
        """
        return self._engine.scrub(self._author(), dry_run=dry_run)

    def prune(self, *, dry_run: bool = False, confirmed: bool = False) -> Pruned:
        """Expire memories that are due, in all scopes, and remove those that expired long ago.

        Args:
            dry_run: only return what would be done.
            confirmed: even if so many would expire at once that the clock may be wrong.

        Raises:
            StoreError: it could not be written; what was done before is kept.
        """
        retention = self._engine.settings.keep.expired_days * DAY
        return prune(self._engine.store, retention, dry_run=dry_run, confirmed=confirmed)

    def jobs(self) -> Mapping[str, JobState | None]:
        """Return the state of the background jobs, by name; None: it was never due."""
        known = self._engine.timers.states()
        return {name: known.get(name) for name in self._engine.timers.names}

    def run_job(self, name: str, timeout: float = 600.0) -> str:
        """Run a background job now and wait for it; return a one-line result.

        Args:
            name: see `jobs`.
            timeout: seconds to wait for the worker process.

        Raises:
            InputError: there is no such job.
            StoreError: the run cannot be recorded.
        """
        return run_and_wait(self._engine.timers, name, timeout)

    def librarian(self, *, run: bool = False, on: bool | None = None) -> Mapping[str, Any]:
        """Return the state of the librarian: `waiting` turns, `runs` with what each did, and what is `failing`.

        `without` names the hosts that have no model for it. `tokens_a_day`: what turns as of the last week take, about;
        None: there were none.

        Args:
            run: first have a model process all waiting turns now; `did` then says in a line what came of it.
            on: first drop the waiting turns, `dropped` of them. False: whoever has the store open now leaves it off
                until it is on.

        Raises:
            SettingsError: it is to run, and is off.
        """
        if run and not self._engine.settings.librarian:
            raise SettingsError("the librarian is off; switch it on with: perdure librarian on")
        desk = self._engine.librarian
        did: dict[str, Any] = {} if on is None else {"dropped": desk.switch(on=on)}
        did |= {"did": desk.run(now=True)} if run else {}
        waiting = sum(len(batch.turns) for batch in desk.waiting())
        told = {"waiting": waiting, "tokens_a_day": self._tokens_a_day(), "without": desk.without()}
        return {**told, **desk.state(), **did}

    def _tokens_a_day(self) -> int | None:
        now = self._engine.clock.now()
        with self._engine.store.database.read() as connection:
            turns, conversations, first = receipts.pace(connection, self._audience, now - 7 * DAY)
        days = max(1.0, (now - first) / DAY)
        return round((turns * TURN + conversations * CONVERSATION) / days) if turns else None

    def inbox(self) -> Sequence[InboxTurn]:
        """Return the turns that are not captured yet, or cannot be, oldest first."""
        return inbox.turns(self._engine.store, self._audience)

    def drop_turns(self, *ids: str, dry_run: bool = False) -> Sequence[InboxTurn]:
        """Permanently remove failed and damaged turns; return them. `dry_run` only returns them.

        Raises:
            NotFoundError: there is no such turn; none was removed.
            StoreError: they could not be removed.
        """
        return inbox.remove(self._engine.store, self._audience, ids, dry_run=dry_run)

    def notices(self) -> Sequence[str]:
        """Return notices for the user: why the store is read-only, and which turns are not captured yet."""
        refusal = self._engine.store.refusal
        waiting = sum(turn.state == inbox.WAITS for turn in self.inbox())
        told = [f"{counted(waiting, 'turn')} to capture when a host next starts: perdure review"] if waiting else []
        return [refusal, *told] if refusal else told

    def verify(self) -> Sequence[Finding]:
        """Check the whole store for damage and drift; repair it with `perdure verify --fix`."""
        return verify(self._engine.store)

    def backup(self, target: Path | str | None = None) -> Path:
        """Write a verified copy of the whole store while it is in use; return where it is.

        Raises:
            StoreError: it could not be written.
        """
        return backup(self._engine.store, None if target is None else Path(target))

    def export(self, target: Path, *, vectors: bool = False, journal: bool = False) -> Exported:
        """Write every memory of all scopes to a JSONL file, redacted.

        Args:
            target: the file; it must not exist.
            vectors: include their vectors.
            journal: include who changed what, for reading.

        Raises:
            StoreError: it could not be written.
        """
        return export(self._engine.store, target, vectors=vectors, journal=journal)

    def import_from(
        self, path: Path, kind: str | None = None, *, trust: bool = False, dry_run: bool = False
    ) -> Imported:
        """Import memories from an export or another system. Repeating an import changes nothing.

        Args:
            path: what to read.
            kind: one of `perdure.importers.sources.KINDS`; None: detected.
            trust: recall imported memories unasked, as if the user had said them.
            dry_run: only return what would be done.

        Raises:
            InputError: it cannot be read.
            StoreError: it could not be written.
        """
        store = self._engine.store
        source = part("importers.sources").load_source(path, store.key, kind, trust=trust)
        return bring_in(store, source, trust=trust, dry_run=dry_run)

    def has(self, fact_id: Named) -> bool:
        """Return whether there is a memory with this id, or exactly one whose id begins with it."""
        view = self._view(include_superseded=True)
        try:
            return bool(self._engine.store.database.query(search.by_prefix, fact_id, view))
        except (NotFoundError, AmbiguousIdError):
            return False

    def changes(self, since: int = 0, limit: int = 1000) -> Sequence[Change]:
        """Return the changes to memories after change number `since`, oldest first."""
        return self._engine.store.database.query(history.changes, self._audience, since, limit)

    def live_ids(self) -> set[str]:
        """Return the ids of all live memories that the caller may read."""
        return self._engine.store.database.query(search.ids, self._view())

    def evaluate(self, size: int = 50, seed: int = 0) -> Evaluation:
        """Query up to `size` memories in several ways and count what comes up; see `perdure.api.evaluate`."""
        from perdure.api.evaluate import evaluate

        return evaluate(self._engine, self._context, size, seed)

    def sync_index(self, timeout: float = 120.0) -> bool:
        """Have the worker update the derived index; return whether it was done within the timeout (seconds)."""
        if self._engine.store.space() is None:
            return False
        deadline = time.monotonic() + timeout
        while self._engine.feed.behind() and time.monotonic() < deadline:
            self._engine.start_worker()
            time.sleep(0.05)
        return not self._engine.feed.behind()

    def triggers(self, fact_id: Named) -> Sequence[Trigger]:
        """Return the triggers of a memory, also if it is forgotten: for people, not for a model.

        Raises:
            InputError, NotFoundError, AmbiguousIdError: see `perdure.errors`.
        """
        view = replace(self._view(), everything=True)
        with self._engine.store.database.read() as connection:
            fact = search.by_prefix(connection, fact_id, view)
            return of(connection, [fact.id]).get(fact.id, [])

    def embed(self, text: str) -> Sequence[float] | None:
        """Return the vector that a query of this text is searched with; None without a model.

        Raises:
            ModelError: the model failed.
        """
        embedder = self._engine.model.embedder()
        return None if embedder is None else [float(value) for value in embedder.embed([text], query=True)[0]]

    def vault(self, passphrase: str | None = None) -> Vault:
        """Open the vault of this store; close it after use.

        Args:
            passphrase: its key is derived from this; None: PERDURE_VAULT_PASSPHRASE, else the key of the OS keyring.

        Raises:
            StoreError: one of its kinds.
        """
        vault: Vault = part("vault.vault").Vault(
            self._engine.store.folder, passphrase=passphrase, clock=self._engine.clock
        )
        return vault

    def _reviewed(self, fact_ids: Sequence[str], state: str, dry_run: bool) -> Sequence[Fact]:
        return review.decide(self._engine.store, self._audience, self._author(), fact_ids, state, dry_run)
