"""The composition root: one open store with everything that works on it."""

from __future__ import annotations

import atexit
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakSet

from perdure import telemetry
from perdure.background.drain import Drain
from perdure.background.keeper import Keeper, TurnGate
from perdure.background.scheduler import Job, Pause, Scheduler
from perdure.background.worker_process import WorkerProcess
from perdure.capture.intake import as_sequence
from perdure.clock import Clock, SystemClock
from perdure.embed.base import Embedder
from perdure.engine.audiences import audience_of, conversation, others_of, overheard, project_in, projects_in
from perdure.engine.composing import (
    check_patterns,
    check_table,
    embedder_factory,
    librarian_model,
    llm_factory,
    load_extensions,
    recall_options,
    reranker_of,
    vector_index,
    writing_options,
)
from perdure.engine.file_memory import FileMemory, files_options
from perdure.engine.forget_orders import ForgetOrders
from perdure.engine.jobs import DAY, HOUR, MINUTE, worker_jobs
from perdure.engine.model import Model, Recipes
from perdure.engine.receipt_writer import ReceiptWriter
from perdure.engine.settings import Settings
from perdure.engine.store_opening import store_of
from perdure.engine.turn_intake import Taken, TurnIntake
from perdure.errors import StoreClosedError, StoreError, StorePurgedError, StoreUnavailableError
from perdure.heap import give_back
from perdure.hooks.types import Channel, Messages, Opening, Placement, Recall, TurnContext
from perdure.index.feeding import Feeding, IndexFeed
from perdure.index.missing import is_any
from perdure.index.vector_index import ScaledIndex, Surveyor, VectorIndex
from perdure.llm import OWN, Lent
from perdure.native import at_exit
from perdure.parts import part
from perdure.recall.expand import Expander
from perdure.recall.pipeline import Asked, Recaller
from perdure.recall.receipt import Receipt
from perdure.recall.session_state import Ended, Ledger, earlier, from_receipts, newest_reply, visible
from perdure.speech.orders import asked_for, says_again
from perdure.store import notices, receipts, spaces
from perdure.store.expiry import end_moments
from perdure.store.fact import Fact, Summaries
from perdure.store.lifecycle import note_recalled, used
from perdure.store.scope import Scope
from perdure.store.spaces import VectorSpace
from perdure.store.transaction import Author
from perdure.text.fence import fence
from perdure.text.pluralize import counted
from perdure.text.timestamps import day_of

if TYPE_CHECKING:
    from perdure.capture.describe import CategoryPatterns
    from perdure.capture.pipeline import Capturer
    from perdure.capture.statements import CaptureRule
    from perdure.capture.writing import Writer
    from perdure.engine.agent_log import AgentLog
    from perdure.engine.beside import Beside
    from perdure.engine.file_purge import Scrubbed
    from perdure.engine.lessons import Lessons
    from perdure.engine.reminders import Reminders
    from perdure.librarian.desk import Desk
    from perdure.maintenance.purge import Purge
    from perdure.recall.past_failures import Act

WORKER = "perdure.engine.worker"
LOOK = 0.05
"""Seconds between two looks whether a turn has been captured that could not be before."""
CLOSING = 2.0
"""Seconds in which all is to be finished and closed."""
_log = logging.getLogger("perdure.plugin")
_abandoned: list[dict[str, Any]] = []
"""What the parent's engines held: never used here, and never tidied up, as that would be done to the parent's files."""


class Engine:
    """Recalls, captures and keeps one data folder in order. Usable from any thread; `close` it in the end."""

    def __init__(
        self, home: Path, settings: Settings, *, clock: Clock | None = None, guest: bool = False, moved: bool = False,
        load_model: bool = True, lent: Mapping[str, Lent] | None = None,
    ) -> None:  # fmt: skip
        """Open the folder and start what works in the background; `guest` and `moved` are those of `store_of`."""
        self.settings, self._lent = settings, lent or {}
        self.clock = clock or SystemClock()
        self._began = self.clock.now()
        check_patterns(settings)
        check_table(settings)
        self.extensions = load_extensions(settings)
        load = embedder_factory(settings, self.extensions) if load_model else None
        reranker = reranker_of(settings, self.extensions)
        make_llm = llm_factory(settings)
        summaries = Summaries(settings.summary_threshold)
        self.store = store_of(home, settings, guest=guest, moved=moved, clock=self.clock, summaries=summaries)
        # At which what works in the background waits for turns; recall's gate is another.
        self.gate = TurnGate()
        self._keeps_house = not guest and self.store.refusal is None
        self.keeper = Keeper(self.gate, self._tick)
        self.model = Model(
            self.store, load, self._index, settings.min_cosine, self._embed_missing,
            recipes=Recipes(settings, self.extensions), switch_by_itself=settings.model_switch == "auto",
            on_switch=self.start_worker, pause=self.gate.pause,
        )  # fmt: skip
        self.llm = make_llm(self.store)
        self.ledger = Ledger(
            self.store.key, earlier(self.store), visible(self.store), from_receipts(self.store, receipts.openings),
            from_receipts(self.store, receipts.was_compacted), from_receipts(self.store, receipts.was_asked),
        )  # fmt: skip
        self.drain = Drain(
            self.store, lambda *given: self.capturer.process(*given), self.keeper, self.gate,
            lambda entries: self.files.restore(entries),
        )  # fmt: skip
        self._worker = WorkerProcess(WORKER, self.store.folder, settings.model_dump(mode="json", exclude_defaults=True))
        self.feed = IndexFeed(
            self.store, Feeding(self.store.database, settings.vector_index, settings.index.crossover),
            self.start_worker, batch=settings.index.vectors, seconds=settings.index.seconds,
        )  # fmt: skip
        self.files = FileMemory(
            self.store, settings, self.clock, self.keeper, self.gate,
            embedder=self.model.embedder, scale=self.model.scale, start_worker=self.start_worker,
        )  # fmt: skip
        self._recaller = Recaller(
            self.store, recall_options(settings), self.model.leg, self.clock, reranker, self.files.source,
            Expander(self.store, self.llm), _out_of_date, self.model.wait,
        )  # fmt: skip
        self._intake = TurnIntake(
            self.store.acknowledge, self.store.key, settings, self.clock, self.store.cursor, self.files.said
        )
        self.forget_orders = ForgetOrders(self.store, self.settle)
        self.receipts = ReceiptWriter(self.store, recall_options(settings), self.clock, self._soon)
        self.closed = False
        self.keeper.start()
        jobs = [*self._jobs(), *worker_jobs(settings)]
        self.timers = Scheduler(self.store, jobs, self.clock, self.gate, start_worker=self.start_worker)
        self._keep_house()
        self.model.start()
        at_exit(self.close)
        _engines.add(self)

    def recall(
        self,
        prompt: str,
        context: TurnContext,
        asked: Asked = Asked(),  # noqa: B008 - frozen
        receipt_to: Callable[[Receipt], None] | None = None,
    ) -> Recall | None:
        """Return what the model should see in this turn, or None. The receipt is written afterwards.

        With `receipt_to` that takes the receipt instead, and the recall leaves nothing behind: no receipt, no count.
        """
        audience = audience_of(context)
        session = conversation(context, audience)
        asked = replace(asked, beside=self._beside(context))
        if session is not None:
            # What stands in the system prompt is gone with the next turn, whatever the host keeps.
            seen = context.keeps_block and self.settings.recall_placement is not Placement.SYSTEM
            shown = self.ledger.ids(session) if seen else asked.shown
            # A greeting is no turn that a session's memories could come with.
            first = bool(self.settings.directives.session_tags) and self.ledger.is_unasked(session)
            compacted = partial(self.ledger.is_compacted, session)
            asked = replace(
                asked,
                first_turn=first,
                compacted=compacted,
                shown=shown,
                begun=self.ledger.begun(session) if seen else shown,
            )
            if receipt_to is None and self.ledger.is_new(session):
                self.end_moments(context, others=True)
        with self.gate.turn():
            recall, receipt = self._recaller.recall(prompt, audience, session=context.session_id, asked=asked)
        if receipt_to is not None:
            receipt_to(receipt)
            return recall
        home = audience.home
        if home is not None:
            # Callers whose id fails closed would all share one name, and could ask what the others had asked.
            looked_up = receipt.silence is None
            self.ledger.note(session or f"{home}\0", prompt, recall, self.clock.now(), asked=looked_up)
            if self.store.refusal is None:
                if recall is not None and session is not None:
                    self._soon("missed", partial(self._missed, prompt, recall, home, context))
                self.receipts.keep_turn(receipt, home, recall, others_of(context))
        return recall

    def opening(self, context: TurnContext, *, again: bool = False, look: bool = False) -> Opening | None:
        """Return what a session should begin with; None also where its model sees that already.

        `again`: it sees that no more. Then it is the same once more, without what may no longer be seen. A `look`
        leaves no receipt.
        """
        audience = audience_of(context)
        session, home = conversation(context, audience), audience.home
        projects = ", ".join(projects_in(context))
        given = self.ledger.openings(session) if session is not None and again else {}
        if session is not None and not again and self.ledger.is_opened(session, projects):
            return None
        from perdure.recall.opening import Opener, receipt_of

        withheld = context.host if self.settings.withholds(context.host) else None
        outside = withheld if context.chat == "direct" else ""
        options = recall_options(self.settings)
        opener = Opener(
            self.store, options, self.settings.opening_tokens, self.model.leg, self.model.shipped_index, outside,
            context.has_tools,
        )  # fmt: skip
        if session is not None and projects in given:
            before = given[projects]
            found = opener.renewed(before, audience, context.session_id, self._beside(context)) if before else None
            if found is not before:
                self.ledger.open(session, projects, found)
            return found
        self.end_moments(context, others=True)
        compacted = session is not None and self.ledger.is_compacted(session)
        with self.gate.turn():
            found = opener.opening(audience, context.session_id, self._beside(context), compacted=compacted)
        if session is not None:
            self.ledger.open(session, projects, found)
        if found is not None and home is not None and not look and self.store.refusal is None:
            self.receipts.keep(found, receipt_of(found, projects), context.session_id, home)
        return found

    def foresee(self, prompt: str, context: TurnContext) -> None:
        """Do what of a recall the prompt alone decides."""
        with self.gate.turn():
            self._recaller.foresee(prompt, audience_of(context), context.session_id)

    def note_use(self, messages: Messages, context: TurnContext) -> None:
        """Strengthen, in the background, the memories that a turn's reply has made use of."""
        session = conversation(context, audience_of(context))
        reply = newest_reply(as_sequence(messages))
        # A host may tell of the prompt first: what was shown with it waits for the reply.
        if session is None or not reply:
            return
        taken = self.ledger.take(session)
        if taken.shown or taken.searched:
            self.keeper.submit("use", lambda: self._use(reply, taken, context))

    def handed_out(self, fact_ids: Sequence[str], hits: Sequence[str], author: Author) -> None:
        """Count, in the background, that a tool has handed memories to an agent, which used the `hits` among them."""

        def count() -> None:
            self.store.database.jot(note_recalled, fact_ids)
            self._used(hits, author)

        if fact_ids:
            self.keeper.submit("recalled", count)

    def end_moments(self, context: TurnContext, *, others: bool = False) -> None:
        """Let expire, in the background, what was of the moment in a conversation, or in those before it."""
        home, session = audience_of(context).home, context.session_id
        if home is None or not session or self.store.refusal is not None:
            return
        for scope in {home, Scope.parse(context.project) if context.project else home}:
            self.keeper.submit("moments", partial(end_moments, self.store, scope, session, others=others))

    def compacted(self, context: TurnContext) -> None:
        """Take note that the model no longer sees what a conversation was given before."""
        session = conversation(context, audience_of(context))
        if session is not None:
            self.ledger.forget(session)
            self._recaller.renew(session)
            self.at_rest(context)
            if self.store.refusal is None:
                self.keeper.submit("compacted", lambda: self.receipts.compacted(session))

    def at_rest(self, context: TurnContext) -> None:
        """Take note that a conversation is at rest: the librarian need not wait for more of it."""
        if self.settings.librarian:
            self.keeper.submit("librarian", lambda: self.librarian.rest(self._lending(context)))

    def take_in(self, messages: Messages, context: TurnContext) -> int:
        """Acknowledge a turn: what is taken in of it is on disk when this returns; return how many messages that is."""
        audience = audience_of(context)
        if audience.home is None:
            _log.warning("nothing captured: the agent's or user's id is missing or malformed")
            return 0
        # One undo takes back what a turn says, and what tools change in it.
        batch = self.ledger.batch(conversation(context, audience) or "", as_sequence(messages))
        with self.gate.turn():
            taken = self._intake.take(messages, context, audience.home, batch)
            record = self.files.recorder(messages, context, audience, taken.at)
        if taken.left_out:
            self.keeper.submit("left out", lambda: self._tell_left_out(taken, str(audience.home)))
        if taken.entry is not None:
            self.forget_orders.said(taken.entry["cursor"], taken.entry["messages"][-1].get("at") or taken.entry["at"])
            self.drain.accept(taken.entry, record)
        elif record is not None:
            self.keeper.submit("transcript", record)
        if self.settings.librarian and taken.entry is not None:
            said = tuple(taken.fresh)
            scopes = [str(audience.home), *([context.project] if context.project else ())]
            self._soon("librarian", lambda: self.librarian.note(said, self._lending(context), scopes, taken.at))
        return taken.messages

    def note_work(self, messages: Callable[[], Messages], context: TurnContext) -> None:
        """Keep, in the background, what an agent has done in a session so far, as its messages tell."""
        project = audience_of(context).home and project_in(context)
        wanted = self.settings.agent_log and self.settings.auto_capture and self.settings.heeds(context.trigger)
        if wanted and project and context.session_id and context.chat == "direct" and self.store.refusal is None:
            self.keeper.submit("agent log", lambda: self._agent_log.take(messages(), project, context))

    def before_tool(self, act: Act, context: TurnContext) -> Recall | None:
        """Return what the model should see before a tool runs; None: nothing like it was met, or it was told of it."""
        audience, settings = audience_of(context), self.settings
        session, home = conversation(context, audience), audience.home
        wanted = (
            settings.agent_log == "remind" and settings.recalls(context.trigger) and not overheard(context, settings)
        )
        if not wanted or project_in(context) is None or session is None or home is None:
            return None
        with self.gate.turn():
            found = self._reminders.of(act, audience, session, context.session_id or "", ids=context.has_tools)
        if found is None:
            return None
        recall, body = found
        if self.store.refusal is None:
            self.receipts.keep(recall, {**body, "scopes": others_of(context)}, context.session_id, home)
        return recall

    def obey(self, prompt: str, context: TurnContext) -> str:
        """Forget what a turn asks for, and return the block that says so; see `ForgetOrders.obey`."""
        heeded = self.settings.auto_capture and self.settings.heeds(context.trigger)
        audience = audience_of(context)
        if not (heeded and context.is_users):
            return ""
        told = self.forget_orders.obey(prompt, audience, context.session_id, context.host or "")
        session = conversation(context, audience)
        if told and session is not None:
            # It is a turn of its own, in which nothing is recalled.
            self.ledger.note(session, prompt, None, self.clock.now(), asked=False)
        return told

    def refused(self, context: TurnContext) -> str:
        """Return, once, the block that says what a user asked to be remembered and was a secret; empty: nothing."""
        home = audience_of(context).home
        kinds: Sequence[str] = ()
        with suppress(StoreError):  # where it cannot be read, the turn goes on; it is told later
            kinds = notices.take_refused(self.store, str(home)) if home is not None else ()
        told = (
            f"Not remembered, although the user asked, because it holds a secret ({', '.join(kinds)}). Say so once: "
            'secrets are kept with "perdure vault store SERVICE".'
        )
        return fence(told, self.store.key, context.session_id) if kinds else ""

    def _tell_left_out(self, taken: Taken, home: str) -> None:
        from perdure.capture.sentences import sentences

        notices.tell_left_out(self.store, taken.left_out)
        said = (message["text"] for message in (taken.entry or {}).get("messages", ()) if "role" not in message)
        if any("[redacted " in (asked or "") for text in said for asked in asked_for(sentences(text))):
            notices.note_refused(self.store, home, taken.left_out)

    def purge(self, fact_ids: Sequence[str], author: Author) -> Purge:
        """Remove facts for good; certified if no other process has the store open, else pending."""
        from perdure.maintenance.purge import certify, purge

        started = purge(self.store, fact_ids, author)
        # The worker counts as another process, and can be stopped at any moment. The inbox is emptied.
        self._worker.stop()
        self.files.log.flush()
        self.files.pull()
        return next((done for done in certify(self.store, self._clean_files) if done.id == started.id), started)

    def scrub(self, author: Author = Author(Channel.LIBRARY), *, dry_run: bool = False) -> Scrubbed:  # noqa: B008
        """Pass what is stored through the present redactor; see `scrub_folder`."""
        from perdure.engine.file_purge import scrub_folder

        done = scrub_folder(self.store, files_options(self.settings), author, dry_run, self.gate.pause, self._worker)
        self._embed_missing()
        return done

    def recover(self) -> None:
        """Have the turns captured, soon, that processes which are gone have left behind."""
        self.keeper.submit("recover", self.drain.recover)

    def settle(self, timeout: float) -> bool:
        """Wait until what turns have left behind is done; return whether that happened in time (seconds).

        What fails in that time is waited for, too, as it is tried again.
        """
        until = time.monotonic() + timeout
        while self.keeper.settle(until - time.monotonic()) and self.drain.waits and time.monotonic() < until:
            time.sleep(LOOK)
        return self.keeper.settle(0) and not self.drain.waits

    def start_worker(self) -> None:
        """Start the worker process, which brings the derived index up to date."""
        if self._keeps_house:
            self._worker.ensure()

    def close(self) -> None:
        """Finish what was begun within two seconds, stop all threads and the worker, close all files."""
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        deadline = time.monotonic() + CLOSING
        self.timers.stop()
        self.files.sync.close()
        self.keeper.close(_left(deadline))
        self._worker.ask()
        self.timers.close(_left(deadline))
        self._recaller.close()
        self.files.close()
        self.model.close(_left(deadline))
        self._worker.stop(_left(deadline))
        self.store.close()

    # What captures is imported behind the turn: a process that answers one question ends before.

    @cached_property
    def rules(self) -> tuple[CaptureRule, ...]:
        """The capture rules of the settings and of extensions."""
        from perdure.capture.rules import pattern_rules

        patterns = pattern_rules(self.settings.capture_patterns)
        return *patterns, *(factory() for factory in self.extensions.capture_rules.values())

    @cached_property
    def categories(self) -> CategoryPatterns:
        """The user's own categories."""
        from perdure.capture.describe import compile_categories

        return compile_categories(self.settings.categories)

    @cached_property
    def lessons(self) -> Lessons:
        """What gives memories triggers where they were missed."""
        from perdure.engine.lessons import Lessons

        return Lessons(self.store, self.model, self.clock)

    @cached_property
    def writer(self) -> Writer:
        """What compares facts and writes them."""
        from perdure.capture.writing import Writer

        return Writer(self.leg, writing_options(self.settings))

    def _lending(self, context: TurnContext) -> TurnContext:
        own = next((name for name in self._lent if name.startswith(OWN)), "")
        return replace(context, host=f"{context.host or ''}{own}") if own else context

    @cached_property
    def librarian(self) -> Desk:
        """What has a language model read what was said, and proves what it proposes."""
        from perdure.librarian.apply import Applier
        from perdure.librarian.desk import Desk
        from perdure.librarian.request import Reader

        applier = Applier(self.store, lambda: self.writer, lambda: self.categories, self.leg)
        model = librarian_model(self.settings, self.store, self.llm, self._lent)
        return Desk(self.store, Reader(self.store, self.leg, self.settings.withholds), applier, model, self._began)

    @cached_property
    def _agent_log(self) -> AgentLog:
        from perdure.engine.agent_log import AgentLog

        return AgentLog(self.store, self.writer, self.clock)

    @cached_property
    def _reminders(self) -> Reminders:
        from perdure.engine.reminders import Reminders

        return Reminders(self.store, self.ledger, recall_options(self.settings))

    @cached_property
    def capturer(self) -> Capturer:
        """What makes facts of turns."""
        from perdure.capture.heads import learnt
        from perdure.capture.pipeline import Capturer, Quota

        quota = Quota(**self.settings.capture_limits.model_dump(include={"turn", "session", "day"}))
        return Capturer(
            self.store, self.writer, lambda: self.rules, quota, self.ledger.traces, self.categories,
            learnt if self.settings.capture_learnt else None, self.forget_orders.obeyed,
        )  # fmt: skip

    def _keep_house(self) -> None:
        if not self._keeps_house:
            return
        self.recover()
        self.keeper.submit("capture", lambda: self.capturer)
        self.keeper.submit("scrub", self._scrub_if_due)
        self.keeper.submit("certify", self._certify)
        if telemetry.was_late():
            self.keeper.submit("telemetry", lambda: notices.tell_reporting(self.store))
        if self.settings.timers:
            # Behind the recovery: what a dead process left is stored before anything is looked after.
            self.keeper.submit("timers", self.timers.start)

    def _jobs(self) -> list[Job]:
        """Return the jobs that run in this process: each steps aside for turns."""
        hours = self.settings.jobs
        # The desk itself sees to it that one process reads at a time.
        reads = Job("librarian", MINUTE, MINUTE, lambda pause: self.librarian.run(pause), here=True, each=True)
        return [
            *([reads] if self.settings.librarian else ()),
            Job("prune", hours.prune * HOUR, 0, self._prune, at_start=True),
            Job("canary", hours.canary * HOUR, 2, self._sing, at_start=True),
            Job("files", hours.files * HOUR, 10, self._look_at_files, here=True),
        ]

    def _prune(self, pause: Pause) -> str:
        from perdure.background.prune import Retention, prune

        # A host that runs for months would else leave what others left behind to its next start.
        self.recover()
        keep = self.settings.keep
        days = keep.conversation_days
        kept = Retention(keep.expired_days * DAY, keep.receipt_days * DAY, None if days is None else days * DAY)
        done = prune(self.store, self.files.log, kept, pause)
        # Many threads come and go in native code, and each leaves room that only another one like it would use.
        give_back()
        return done

    def _sing(self, pause: Pause) -> str:
        from perdure.background.canary import Canary

        def recalled(prompt: str, scope: Scope) -> str:
            context = TurnContext(scopes=(str(scope),), host="canary")
            recall = self.recall(prompt, context, receipt_to=lambda receipt: None)
            return recall.block if recall else ""

        return Canary(self.store, self.capturer, recalled).sing(pause)

    def _look_at_files(self, pause: Pause) -> str:
        if not self.files.sync.roots():
            return "no files or conversations"
        left = self.files.sync.fresh()
        return f"{counted(left, 'file')} left to read" if left else "up to date"

    def _scrub_if_due(self) -> None:
        from perdure.engine.file_purge import scrub_if_due

        scrub_if_due(self.store, self.scrub)

    def _certify(self) -> None:
        from perdure.maintenance.purge import certify

        certify(self.store, self._clean_files)

    @cached_property
    def _clean_files(self) -> Callable[[Sequence[str]], None]:
        from perdure.engine.file_purge import cleaner

        return cleaner(self.store, files_options(self.settings))

    def _use(self, reply: str, taken: Ended, context: TurnContext) -> None:
        from perdure.capture.used import used_in

        self._used(used_in(reply, taken.shown, taken.prompt), Author(Channel.USER, context.host, context.session_id))
        if taken.searched:
            self.lessons.searched(reply, taken, context)

    def _missed(self, prompt: str, recall: Recall, home: Scope, context: TurnContext) -> None:
        if says_again(prompt):
            self.lessons.said_again(prompt, recall, home, context)

    def _used(self, fact_ids: Sequence[str], author: Author) -> None:
        if fact_ids and self.store.refusal is None:
            with self.store.write(author) as tx:
                used(tx, fact_ids)

    def _beside(self, context: TurnContext) -> Beside | None:
        files = context.in_context + context.in_project
        if not files:
            return None
        from perdure.engine.beside import Beside

        return Beside(files, day_of(self.clock.now(), self.store.zone), self.store.zone, context.in_context)

    def _index(self, space: VectorSpace) -> Surveyor:
        return vector_index(self.store, space, self.settings, lambda: self.keeper.submit("vector index", self._mend))

    def _mend(self) -> None:
        part("lance.indexer").mark_suspect(self.store)
        self.start_worker()

    def leg(self) -> tuple[Embedder, VectorIndex] | None:
        """Return the embedder of the store's space and the index of the same, None while there is no model."""
        leg = self.model.leg()
        return (leg.embedder, ScaledIndex(leg.index, leg.calibration.scale)) if leg else None

    def _soon(self, name: str, work: Callable[[], object]) -> None:
        """Have something done in the background; at once for a guest, whose process may end with its answer."""
        if self._keeps_house:
            self.keeper.submit(name, work)
            return
        try:
            with self.gate.turn():  # it waits for no other writer for long: what was said is still to be kept
                work()
        except StoreError:
            self.keeper.submit(name, work)

    def _tick(self) -> None:
        if not self._keeps_house:
            return
        self._worker.tidy()
        self.store.remember()
        if self.store.database.displaced:
            return  # nothing can be written: what waits goes on waiting
        try:
            self.store.check_purged()
        except StorePurgedError:
            from perdure.maintenance.teardown import clear

            clear(self.store.folder)
            return
        except StoreUnavailableError:
            return  # a server that is away; the turns of the time wait in the inbox, and `status` tells
        self.drain.retry()
        # Until then the inbox holds what was recorded.
        self.files.log.flush()
        self.store.inbox.empty()
        self.feed.look()
        self._switch_if_due()
        self.files.follow()

    def _switch_if_due(self) -> None:
        # Its worker may have been killed. One that cannot go on says so, and is not started again and again.
        with self.store.database.read() as connection:
            waits = spaces.building(connection) is not None and spaces.problem(connection) is None
        if waits:
            self.start_worker()

    def _embed_missing(self) -> None:
        # Facts that were stored before the model was there get their vectors in bulk, in the worker.
        space = self.store.space()
        if space is not None and is_any(self.store, space.id):
            self.start_worker()


def _out_of_date(older: Fact, newer: Fact) -> str:
    from perdure.capture.decide import stale

    return stale(older, newer)


def _left(deadline: float) -> float:
    return max(0.1, deadline - time.monotonic())


_engines: WeakSet[Engine] = WeakSet()


class Forked:
    """What a forked child finds in the place of an engine. Locks of threads that it does not have are not touched."""

    def __getattr__(self, name: str) -> NoReturn:
        """Say what is the matter, whatever is asked for."""
        raise StoreClosedError("this memory was opened before the process was forked; open it again in the child")

    def close(self) -> None:
        """Do nothing: the files are the parent's."""


def _in_child() -> None:
    for engine in list(_engines):
        if not engine.closed:
            # The worker is the parent's.
            engine.store.inbox.abandon()
            engine._worker.abandon()
        _abandoned.append(engine.__dict__)
        engine.__dict__ = {"closed": True}
        engine.__class__ = Forked  # type: ignore[assignment]
    _engines.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
