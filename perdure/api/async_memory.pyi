"""The async twins of `Memory` and its parts, as type checkers see them."""

# Written by `python -m scripts.reference`; change the methods of `Memory`, not this page.

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from perdure.api.admin import Admin
from perdure.api.aliases import Aliases
from perdure.api.assign import Assigned
from perdure.api.audit import Audit
from perdure.api.evaluate import Evaluation
from perdure.api.explain import Why
from perdure.api.fact_search import Hit
from perdure.api.files import Files, FilesStatus, FlushRequest
from perdure.api.inbox import InboxTurn
from perdure.api.memory import Memory
from perdure.api.status import Status
from perdure.api.stored import Stored
from perdure.api.turn_history import PastTurn
from perdure.api.turns import Turns
from perdure.api.upkeep import Proposals, Upkeep
from perdure.api.view import MemoryView, Named
from perdure.consolidation.checkpoints import Checkpoint
from perdure.consolidation.classify import Classified
from perdure.consolidation.consolidate import Consolidated
from perdure.consolidation.distill import Distilled
from perdure.consolidation.proposals import Proposal
from perdure.consolidation.reflect import Reflected
from perdure.engine.file_purge import Scrubbed
from perdure.files.index import Synced
from perdure.files.roots import Kind, Reading
from perdure.files.search import Answer
from perdure.hooks.types import Channel, Messages, Opening, PromptSection, Recall, TurnContext
from perdure.maintenance.exchange import Exported
from perdure.maintenance.importing import Imported
from perdure.maintenance.purge import Purge
from perdure.recall.receipt import Receipt
from perdure.store.expiry import Pruned
from perdure.store.fact import Fact
from perdure.store.finding import Finding
from perdure.store.history import Change, History, Replacement
from perdure.store.links import Link, Related
from perdure.store.listing import Filter, Page, Progress, State, Stats
from perdure.store.schedule import JobState
from perdure.store.triggers import Trigger
from perdure.store.undo import Undone
from perdure.text.timestamps import Moment
from perdure.vault.vault import Vault
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T", covariant=True)
View = TypeVar("View", bound=MemoryView)

TWINS: dict[type, type[Twin[Any]]]


class Twin(Generic[T]):
    inner: T
    def __init__(self, inner: T) -> None: ...


class AsyncTurns(Twin[Turns]):
    async def before(self, prompt: str, context: TurnContext) -> Recall | None:
        """Recall for a host's turn; see `Recall`. Also None if `auto_recall` is off, or in a group chat."""
    async def opening(self, context: TurnContext | None=..., *, host: str | None=..., folder: str | None=...) -> Opening | None:
        """Return the opening of a session, once: again only after a compaction or a change of project."""
    async def foresee(self, prompt: str, context: TurnContext) -> None:
        """Prefetch: do the part of a recall that needs only the prompt, for a host that knows it before the turn."""
    async def after(self, messages: Messages, success: bool, context: TurnContext) -> int:
        """Accept a host's turn for capture and return as soon as it is on disk."""
    async def did(self, messages: Callable[[], Messages], context: TurnContext) -> None:
        """Record, in the background, what the agent did in a session: files, commands, failures and their fixes."""
    async def before_tool(self, given: Mapping[str, Any], context: TurnContext, *, folder: str=..., began: str=..., lately: Callable[[], Messages]=...) -> Recall | None:
        """Return what fixed an earlier failure in this project related to what a tool is about to do; None: nothing."""
    async def before_compaction(self, messages: Messages, context: TurnContext) -> int:
        """Capture what a host is about to drop from a conversation, as `after` does, and index all of it."""
    async def session_start(self, context: TurnContext) -> None:
        """Note that a conversation starts or resumes."""
    async def session_end(self, context: TurnContext) -> None:
        """Note that a conversation ended, so that all of it can be found, and its transient memories expire."""
    async def adopt(self) -> None:
        """Schedule the capture of what exited processes left in the inbox; call this regularly if there are many."""
    async def looked(self, receipt: Receipt) -> None:
        """Store the receipt of a preview of a recall, which is not a turn, for `Memory.why`."""
    async def past(self, limit: int=..., *, before: float | None=..., marked: bool=..., fact_id: str | None=...) -> Sequence[PastTurn]:
        """Return turns with a recall, newest first."""
    async def one(self, turn: str) -> PastTurn:
        """Return a turn by its receipt's id, or the first eight digits of it."""
    async def replay(self, turn: str) -> Why:
        """Repeat a turn's recall with today's memories and model. Nothing is counted or stored."""
    async def mark(self, turn: str, fact_id: str, wanted: bool | None) -> PastTurn:
        """Mark whether a memory should have come up in a turn, so that `perdure eval` checks it."""


class AsyncFiles(Twin[Files]):
    async def search(self, query: str, *, max_results: int | None=..., min_score: float | None=..., sources: Sequence[str] | None=...) -> Answer:
        """Search memory files and past conversations, also under aliases of what the query names."""
    async def read(self, path: str, start: int | None=..., lines: int | None=...) -> Reading:
        """Read lines of a memory file, by a path or citation from a search result."""
    async def paths(self) -> tuple[str, ...]:
        """Return the memory files that `read` reads for the caller, as it names them, in order."""
    async def add(self, path: Path | str, kind: Kind=..., *, pattern: str=...) -> None:
        """Add a folder to search, in the scope that the caller stores to."""
    async def remove(self, path: Path | str) -> bool:
        """Stop searching a folder; its files stay."""
    async def add_transcript(self, messages: Messages, session: str) -> int:
        """Record a conversation, so that it can be searched; messages already recorded are skipped."""
    async def sync(self, *, force: bool=..., progress: Progress=...) -> Synced:
        """Update the index from the disk, for every scope."""
    async def embed(self, progress: Progress=...) -> int:
        """Embed every indexed text that has no vector yet, in this process; return how many."""
    async def status(self, *, deep: bool=...) -> FilesStatus:
        """Return the index compared with the disk."""
    async def append_note(self, text: str, title: str=...) -> Path:
        """Append to today's note, `memory/YYYY-MM-DD.md` in the caller's workspace; it is on disk when this returns."""
    async def flush_due(self, total_tokens: int, context_window: int, compactions: int, session: str) -> FlushRequest | None:
        """Return what to ask the agent before the host compacts, once per compaction cycle; None if not due."""
    async def prompt_sections(self, mode: str=...) -> tuple[PromptSection, ...]:
        """Return the system prompt sections about memory; none unless `mode` is "full"."""


class AsyncAdmin(Twin[Admin]):
    async def list(self, chosen: Filter=..., *, limit: int=..., offset: int=..., tag: str | None=..., as_of: Moment | None=..., include_superseded: bool=...) -> Sequence[Fact]:
        """Return memories, newest first."""
    async def inventory(self, chosen: Filter=..., *, states: Collection[State | str]=..., limit: int=..., offset: int=..., behind: str | None=..., tag: str | None=..., as_of: Moment | None=..., everyone: bool=...) -> Page:
        """Return a page of all memories, newest first, including hidden ones, each with the reason."""
    async def search(self, query: str, chosen: Filter=..., *, limit: int=..., tag: str | None=..., as_of: Moment | None=..., include_superseded: bool=...) -> Sequence[Hit]:
        """Search all memories that the caller may read, best first; see `perdure.api.fact_search`."""
    async def stats(self, chosen: Filter=...) -> Stats:
        """Count the memories that the caller may read and a filter chooses, by scope and category."""
    async def scopes(self) -> Mapping[str, int]:
        """Count the memories of every scope of the store, whoever may read it."""
    async def assign(self, scope: str, whose: str, *, sessions: Sequence[str]=..., dry_run: bool=...) -> Assigned:
        """Reassign the memories of an agent or a session to one of its users, or to all; see `perdure.api.assign`."""
    async def forget_many(self, chosen: Filter, *, dry_run: bool=...) -> int:
        """Forget all memories that match a filter; `undo` restores them."""
    async def review(self, limit: int=...) -> Sequence[Fact]:
        """Return memories pending review, newest first: they are recalled only once approved."""
    async def approve(self, *fact_ids: str, dry_run: bool=...) -> Sequence[Fact]:
        """Approve memories, so that they are recalled; see `perdure.api.review.decide`, as for `reject`."""
    async def reject(self, *fact_ids: str, dry_run: bool=...) -> Sequence[Fact]:
        """Reject memories, so that they are never recalled unasked."""
    async def replaced(self, since: Moment | None=..., limit: int=...) -> Sequence[Replacement]:
        """Return what was replaced or withdrawn, and by what, latest first."""
    async def take_back(self, *fact_ids: str, dry_run: bool=...) -> Sequence[Fact]:
        """Restore replaced or withdrawn memories beside their replacements; see `perdure.api.review`."""
    async def audit(self, *, fix: bool | Collection[str]=..., progress: Progress=...) -> Audit:
        """Find memories to clean up: duplicates, echoes, and those whose own text says that they are past."""
    async def classify(self, *, dry_run: bool=..., progress: Progress=...) -> Sequence[Classified]:
        """Give memories of the category "other" a better one; see `perdure.consolidation.classify`."""
    async def purge(self, *fact_ids: str) -> Purge:
        """Remove memories from every file of the data folder; this cannot be undone."""
    async def scrub(self, *, dry_run: bool=...) -> Scrubbed:
        """Remove from the whole store the secrets that the present redactor detects; this cannot be undone."""
    async def prune(self, *, dry_run: bool=..., confirmed: bool=...) -> Pruned:
        """Expire memories that are due, in all scopes, and remove those that expired long ago."""
    async def jobs(self) -> Mapping[str, JobState | None]:
        """Return the state of the background jobs, by name; None: it was never due."""
    async def run_job(self, name: str, timeout: float=...) -> str:
        """Run a background job now and wait for it; return a one-line result."""
    async def librarian(self, *, run: bool=..., on: bool | None=...) -> Mapping[str, Any]:
        """Return the state of the librarian: `waiting` turns, `runs` with what each did, and what is `failing`."""
    async def inbox(self) -> Sequence[InboxTurn]:
        """Return the turns that are not captured yet, or cannot be, oldest first."""
    async def drop_turns(self, *ids: str, dry_run: bool=...) -> Sequence[InboxTurn]:
        """Permanently remove failed and damaged turns; return them. `dry_run` only returns them."""
    async def notices(self) -> Sequence[str]:
        """Return notices for the user: why the store is read-only, and which turns are not captured yet."""
    async def verify(self) -> Sequence[Finding]:
        """Check the whole store for damage and drift; repair it with `perdure verify --fix`."""
    async def backup(self, target: Path | str | None=...) -> Path:
        """Write a verified copy of the whole store while it is in use; return where it is."""
    async def export(self, target: Path, *, vectors: bool=..., journal: bool=...) -> Exported:
        """Write every memory of all scopes to a JSONL file, redacted."""
    async def import_from(self, path: Path, kind: str | None=..., *, trust: bool=..., dry_run: bool=...) -> Imported:
        """Import memories from an export or another system. Repeating an import changes nothing."""
    async def has(self, fact_id: Named) -> bool:
        """Return whether there is a memory with this id, or exactly one whose id begins with it."""
    async def changes(self, since: int=..., limit: int=...) -> Sequence[Change]:
        """Return the changes to memories after change number `since`, oldest first."""
    async def live_ids(self) -> set[str]:
        """Return the ids of all live memories that the caller may read."""
    async def evaluate(self, size: int=..., seed: int=...) -> Evaluation:
        """Query up to `size` memories in several ways and count what comes up; see `perdure.api.evaluate`."""
    async def sync_index(self, timeout: float=...) -> bool:
        """Have the worker update the derived index; return whether it was done within the timeout (seconds)."""
    async def triggers(self, fact_id: Named) -> Sequence[Trigger]:
        """Return the triggers of a memory, also if it is forgotten: for people, not for a model."""
    async def embed(self, text: str) -> Sequence[float] | None:
        """Return the vector that a query of this text is searched with; None without a model."""
    async def vault(self, passphrase: str | None=...) -> Vault:
        """Open the vault of this store; close it after use."""


class AsyncProposals(Twin[Proposals]):
    async def find(self, *, dry_run: bool=...) -> Sequence[Proposal]:
        """Propose what was said three times or more; return new proposals. Nothing is written to a file."""
    async def list(self, *, everything: bool=...) -> Sequence[Proposal]:
        """Return open proposals, oldest first; with `everything` also answered and expired ones."""
    async def accept(self, proposal_id: str) -> Proposal:
        """Write a proposal to MEMORY.md of the caller's workspace, in perdure's own section."""
    async def refuse(self, proposal_id: str) -> Proposal:
        """Decline a proposal: it is not made again."""


class AsyncAliases(Twin[Aliases]):
    async def add(self, name: str, other: str, *, scope: str | None=..., channel: Channel=...) -> Stored:
        """Record another name for a thing; prompts and searches that use either name look for both."""
    async def list(self) -> Sequence[Fact]:
        """Return the memories that record aliases, newest first: `entity` is the thing, `value` the other name."""
    async def remove(self, name: str, other: str | None=..., *, dry_run: bool=...) -> Sequence[Fact]:
        """Remove an alias, or all aliases of a name; one `undo` restores them."""


class AsyncUpkeep(Twin[Upkeep]):
    async def consolidate(self, *, cosine: float | None=..., dry_run: bool=..., progress: Progress=...) -> Consolidated:
        """Merge the caller's memories that say the same. The old ones stay for `as_of`; one undo restores all."""
    async def reflect(self, *, days: float | None=..., observations: int | None=..., dry_run: bool=..., channel: Channel=...) -> Reflected:
        """Find patterns in the caller's memories, and store each as quotations, linked to its evidence."""
    async def distill(self, *, dry_run: bool=..., progress: Progress=...) -> Distilled:
        """Capture the caller's recorded conversations that were not captured when they took place; resumable."""
    async def checkpoint(self, intent: str, state: str=..., expected: str=..., *, channel: Channel=...) -> Checkpoint:
        """Save what is about to be done, before risky work, for four hours."""
    async def checkpoints(self, limit: int=...) -> Sequence[Checkpoint]:
        """Return the caller's checkpoints of the last four hours, newest first."""
    async def restore(self) -> Checkpoint:
        """Return the caller's newest checkpoint."""
    @property
    def proposals(self) -> AsyncProposals:
        """Proposed lines for MEMORY.md."""


class AsyncMemoryView(Twin[View]):
    async def add(self, said: str | Messages, **given: Any) -> Sequence[Fact]:
        """Store a text as it is, or what capture finds in messages. The first call waits until the model is loaded."""
    async def store(self, text: str, *, category: str | None=..., importance: float=..., entity: str | None=..., key: str | None=..., value: str | None=..., why: str | None=..., tags: str | Iterable[str] | None=..., decay_class: str | None=..., scope: str | None=..., metadata: Mapping[str, Any] | None=..., channel: Channel=..., supersedes: str | None=..., triggers: Sequence[str] | None=...) -> Stored:
        """Store a memory; it is on disk when this returns. Omitted values are derived from the text."""
    async def update(self, fact_id: Named, **values: Any) -> Stored:
        """Change a memory. A new text creates a new version with a new id; the old one stays for `as_of` and undo."""
    async def forget(self, fact_id: Named) -> Fact:
        """Leave a memory out of every answer from now on; `unforget` and `undo` restore it."""
    async def search(self, query: str, *, limit: int=..., category: str | None=..., tag: str | None=..., as_of: Moment | None=..., scope: str | None=..., metadata: Mapping[str, Any] | None=...) -> Sequence[Hit]:
        """Return the memories nearest to a query, best first, each with its score; there is no minimum score."""
    async def get_all(self, *, limit: int=..., offset: int=..., category: str | None=..., tag: str | None=..., scope: str | None=..., metadata: Mapping[str, Any] | None=...) -> Sequence[Fact]:
        """Return memories, newest first."""
    async def delete(self, fact_id: Named) -> Fact:
        """Forget a memory; see `forget`."""
    async def history(self, fact_id: Named) -> History:
        """Return all versions of a memory, even if it is forgotten, and the changes made to them."""
    async def recall(self, prompt: str, *, as_of: Moment | None=..., include_superseded: bool=..., tag: str | None=..., expand: bool | None=..., receipt_to: Callable[[Receipt], None] | None=...) -> Recall | None:
        """Return the block for a prompt, as a host would get it, or None if nothing is relevant."""
    async def why(self, turn: str | Receipt | None=...) -> Why:
        """Return what a turn of the caller considered, what came up, and why the rest did not."""
    async def why_not(self, fact_id: str, turn: str | Receipt | None=...) -> str:
        """Return in a sentence why a memory did not come up in a turn, or that it did."""
    async def get(self, fact_id: Named) -> Fact:
        """Return the memory with this id, or the only one whose id begins with it (at least 8 digits)."""


class AsyncMemory(AsyncMemoryView[Memory]):
    def for_user(self, user: str, *, agent: str | None=..., project: str | None=..., session: str | None=...) -> AsyncMemoryView[MemoryView]:
        """Return a view of one user's memories; it is cheap, and closed with the store."""
    async def unforget(self, fact_id: Named) -> Fact:
        """Restore a forgotten memory."""
    async def pin(self, fact_id: Named, pinned: bool=...) -> Fact:
        """Pin a memory, so that it never expires, or unpin it."""
    async def link(self, source: str | Fact, target: str | Fact, link_type: str=..., strength: float=...) -> Link:
        """Link two memories; see `perdure.store.links.TYPES`."""
    async def unlink(self, source: str | Fact, target: str | Fact, link_type: str=..., *, dry_run: bool=...) -> None:
        """Remove a link; `dry_run` only checks that this is possible."""
    async def related(self, fact_id: Named, depth: int=..., *, as_of: Moment | None=...) -> list[Related]:
        """Return the memories linked to this one, in both directions, nearest first."""
    async def undo(self, batch: str | None=..., *, session: str | None=..., dry_run: bool=...) -> Undone:
        """Undo the last change, one batch, or all changes of a session; `dry_run` only returns what that would do."""
    async def lookup(self, entity: str, key: str | None=..., *, tag: str | None=..., as_of: Moment | None=..., include_superseded: bool=...) -> list[Fact]:
        """Return the memories in a slot, also under aliases of its entity, most confident first, then newest."""
    async def status(self) -> Status:
        """Return the state of the store."""
    async def ready(self, timeout: float=...) -> bool:
        """Wait until the model is loaded; return whether there is one. Calling this is optional."""
    async def settle(self, timeout: float=...) -> bool:
        """Wait up to `timeout` seconds until all acknowledged turns are captured; return whether they are."""
    @property
    def turns(self) -> AsyncTurns:
        """The turns of a host: recall, capture, and past turns."""
    @property
    def files(self) -> AsyncFiles:
        """Markdown memory and past conversations: search, read, index status."""
    @property
    def aliases(self) -> AsyncAliases:
        """Aliases, such as "GHA" for "GitHub Actions"."""
    @property
    def upkeep(self) -> AsyncUpkeep:
        """Consolidation: merging, reflecting, distilling, proposals, checkpoints."""
    @property
    def admin(self) -> AsyncAdmin:
        """Administration: lists, counts, bulk changes."""
    async def close(self) -> None:
        """Finish pending work and close all files. Closing twice is not an error."""
    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
