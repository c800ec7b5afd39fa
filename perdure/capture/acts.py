"""What an agent did in a session, told by its calls of tools: files, commands, what failed and what then passed.

It is told in words of the agent's own: commands that it ran and how the shell ended them, lines that it wrote, what it
said of them. Nothing that it read enters, be it a file, a page or a pasted text, but for the one line of a command's
output that says why it failed; that line is told only where the failure comes up again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final

from perdure.capture.was_read import WasRead
from perdure.hooks.types import Messages
from perdure.regex import lazy
from perdure.secrets.redact import redact
from perdure.speech.author import Author, author_of
from perdure.speech.tool_use import PATCH, UNREAD, Call, Result, strings, used
from perdure.store.agent_records import FAILED, LEFT, MENDED, RUNS, WORK
from perdure.text.clean import clean, clip, message_text
from perdure.text.escape import orders_in
from perdure.text.fenced import outside
from perdure.text.lexicon import listed

RAN, EDITED, SAID, PLANNED = "ran", "edited", "said", "planned"
FAILURES: Final = 8
"""Failures of a session that are kept, the last."""
LONGEST: Final = 600
"""Characters of a record."""
_LINE, _COMMAND, _WORDS, _PATH, _DID = 140, 100, 200, 90, 250
_FILES = 8
_KEPT = 100
"""Files and commands that a record keeps beside its text, the last: for the session when it goes on."""
_READ = 4_000
"""Characters of each text that are looked at: of a command, of its output at both ends, of what the agent says."""
_TELLING = 3
"""Words of an error by which it is known again."""
STEPS = 500
"""Of what was done in a session, the last."""
_COMMANDS, _PATHS, _TEXTS, _FORMER = (
    ("command", "cmd"),
    ("file_path", "path", "notebook_path", "filePath", "target_file"),
    ("new_string", "content", "new_str", "file_text", "new_source", "code_edit", "newText"),
    ("old_string", "old_str", "oldText"),
)
"""Under which keys tools take a command, the file that they write, what they write into it, and in place of what."""
_BETWEEN = lazy(r"(?<=[.!?\u2026\u3002])\s+|\n+")
_LABEL = lazy(r"[\w./@-]{1,60}")
_JOINTS = lazy(r"[\W_]+")
_HEREDOC = lazy(
    r"""(?s)(?<!<)<<(-)?[ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|\\?(?!\d)([^\s"'<>|;&()]+))(?P<line>[^\n]*\n)"""
    r"""(?:.*?\n)??(?(1)\t*)(?(2)\2)(?(3)\3)(?(4)\4)(?=\n|\Z)|(?<!<)<<-?[ \t]*["'\\\w][^\n]*\n.*"""
)
"""What a command is given in place of a file, up to the word that ends it."""
_REMARK = lazy(r"(?s)(?<!\S)#\s.*")
_PIECES = lazy(
    r"""(?s)(?P<quote>["'])(?P<inner>(?:(?!(?P=quote)|\\).|\\.)*)(?:(?P=quote)|\Z)"""
    r"""|(?<![^\s;&|()])(?P<remark>(?:\#|(?i:rem)[ \t])[^\n]*)"""
    r"""|(?<![^\s;&|(){}])(?P<says>echo|printf|:|true|false)(?:[ \t]+(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s;&|<>()"']+))+"""
    r"""|(?<=\S[ \t])(?:(?<!\S)\w+(?:'\w+)?[,.:!?]*(?:[ \t]+|\Z)){6,}|\\.[^\s;&|()"'\\]*"""
)
"""The pieces of a command that are not its own: what is quoted, remarks, what it says, and words as of a sentence."""
_NUMBER = lazy(r"\d+")
_DRIVE = lazy(r"^[A-Za-z]:(?=[\\/]|$)")
_PATHLIKE = lazy(r"(?<![\w.])(?:[A-Za-z]:)?(?:[\\/][^\s\\/'\":]+){2,}")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that an agent did or said."""

    kind: str  # RAN, EDITED, SAID or PLANNED
    text: str  # the command, the path, the words, or what is left of its plan
    ended: int | None = None  # the exit code of a command; None: it is not known
    more: str = ""  # why a command failed, or what an edit brought in
    branch: str = ""  # of the repository, if it is known
    where: tuple[str, str] = ("", "")  # the folder that a command ran in, and the project's


@dataclass(frozen=True, slots=True)
class Record:
    """One thing to be remembered of a session."""

    kind: str
    text: str
    # By which what failed is known again: `command`, `error`, `files`; and whether it was `mended`.
    signs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False, repr=False, slots=True)
class Session:
    """What is known of a session so far: more of it is taken in as it is told."""

    done: list[Step] = field(default_factory=list)  # the last `STEPS`
    _told: list[int] = field(default_factory=list)  # of all that was done, in order, what it is known again by
    _read: WasRead = field(default_factory=WasRead)
    _root: str = ""  # the project's folder

    def take(self, messages: Messages) -> bool:
        """Take in messages, all that were said so far or the newest; return whether there was anything new.

        A message may say the `cwd` and the `branch`; the result of a command its `exit_code`; what came to the agent
        that a part of it is left out (`UNREAD`). What is malformed is passed over.
        """
        events = list(_events(messages))
        named = [each.name for each in events if each.name]
        known = _known(self._told, named)
        self._told += named[known:]
        for event in events:
            if event.name:
                known -= 1
            if event.name and known < 0:
                self.done += self._steps(event)
            if event.came:
                self._read.add(event.text, whole=event.whole)
        del self.done[:-STEPS]
        return len(named) > 0 and known < 0

    def _steps(self, event: _Event) -> list[Step]:
        if event.given is not None and event.result is not None:
            self._root = self._root or _root(event.folder)
            return list(_done(event.given, event.result, (event.folder, self._root), event.branch, self._read))
        words = _own(event.text, self._read)
        return [Step(SAID, words, branch=event.branch)] if words else []


@dataclass(frozen=True, slots=True)
class _Event:
    """What came to the agent, or what it said."""

    text: str
    came: bool
    name: int = 0  # by which what it did or said is known again; 0: it did nothing
    given: Mapping[str, Any] | None = None  # what the call was given whose result this is
    result: Result | None = None
    folder: str = ""
    branch: str = ""
    whole: bool = True  # nothing is left out of what came


def _events(messages: Messages) -> Iterator[_Event]:
    calls: dict[str, Mapping[str, Any]] = {}
    folder = branch = ""
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        folder, branch = str(message.get("cwd") or folder), str(message.get("branch") or branch)
        told = list(used(message))
        for result in [each for each in told if isinstance(each, Result)]:
            given = calls.pop(result.call, None)
            # Some hosts count the calls of each turn anew.
            name = 0 if given is None else hash((result.call, repr(given), result.ended))
            yield _Event(result.text, True, name, given, result, folder, branch)
        if message.get("role") != "user":
            calls |= {each.id: each.given for each in told if isinstance(each, Call) and each.id}
        if message.get("role") != "assistant":
            parts = message.get("content", message.get("parts"))
            parts = [each for each in parts if not _is_call(each)] if isinstance(parts, list | tuple) else parts
            yield _Event("\n".join(strings(parts)), True, whole=not message.get(UNREAD))
        elif text := message_text(message):
            yield _Event(text, False, hash(text), branch=branch)


def _is_call(part: object) -> bool:
    return [type(each) for each in used(part)] == [Call]


def _known(before: Sequence[int], told: Sequence[int]) -> int:
    """Return how many of those that are told were so before: the most with which what was told before ends."""
    for count in range(len(told), 0, -1):
        shared = min(count, len(before))
        if before and told[count - 1] == before[-1] and told[count - shared : count] == before[-shared:]:
            return count
    return 0


def records(done: Iterable[Step], before: Mapping[str, Mapping[str, Any]] | None = None) -> list[Record]:
    """Return what is to be remembered of a session: nothing if no file was changed and no command was run.

    `before`: the signs of what was remembered of it already, by kinds: some hosts tell the last turn alone.
    """
    past, before = list(done), before or {}
    worked, runs = before.get(WORK, {}), before.get(RUNS, {})
    ran = [place for place, step in enumerate(past) if step.kind == RAN and step.ended is not None]
    files, commits = _changed(past, worked)
    if not (ran or files or before):
        return []
    failures = list(_failures(past, ran))
    kept = [
        _worked(past, files, commits, _texts(worked, "branch")),
        _ended(past, ran, runs),
        _left(past),
        *failures[-FAILURES:],
    ]
    return [each for each in kept if each is not None and not orders_in(each.text)]


# What was done.


def _done(
    given: Mapping[str, Any], result: Result, where: tuple[str, str], branch: str, read: WasRead
) -> Iterator[Step]:
    """Yield what a call did that has come back."""
    plan, path, patch = given.get("todos") or given.get("plan"), _path(given), _patch(given)
    if isinstance(plan, list):
        items = [item for item in map(_open_item, plan) if item and not read.holds(item)]
        yield Step(PLANNED, "; ".join(items))
    elif patch and not result.failed:
        yield from _patched(patch, where, read)
    elif path:
        inside = _inside(path, *where) if _writes(given) and not result.failed else ""
        if inside:
            yield Step(EDITED, inside, more=_brought(_written(given, _TEXTS), _written(given, _FORMER), read))
    elif (command := _command(given, read)) and result.ended is not None:
        yield Step(RAN, command, result.ended, _telling(result.text) if result.ended else "", branch, where)


def aimed_at(given: Mapping[str, Any], folder: str, began: str) -> tuple[list[str], str]:
    """Return the files that a call would change and the command that it would run, as records name them.

    `folder`: where the agent is; `began`: where its session began.
    """
    where, path, patch = (folder, _root(began)), _path(given), _patch(given)
    if patch:
        return list(dict.fromkeys(step.text for step in _patched(patch, where, WasRead()))), ""
    if path:
        inside = _inside(path, *where) if _writes(given) else ""
        return [inside] if inside else [], ""
    command = _command(given, WasRead())
    return [], "" if _looks(command) else _short(command)


def failing(messages: Messages) -> str:
    """Return the error of the last command that messages tell of, by which it is known again; "": it passed."""
    for event in reversed(list(_events(messages))):
        given, result = event.given, event.result
        command = _command(given, WasRead()) if given and result and result.ended is not None else ""
        if result and command and not _looks(command):
            return error_of(_telling(result.text)) if result.ended else ""
    return ""


def quotes(text: str, messages: Callable[[], Messages]) -> bool:
    """Return whether the question that a text ends with may be none of the agent's own: a tool has brought it.

    `messages`: returns the newest of the session. Where they do not reach back to what the user said last, in whose
    answer it is, nothing is known.
    """
    question = _BETWEEN.split(text.strip())[-1]
    if not question.endswith(("?", "\uff1f")):
        return False
    read, told = WasRead(), messages()
    said = [author_of(each) is Author.USER for each in told]
    last = max((place for place, users in enumerate(said) if users), default=len(said))
    for place, message in enumerate(told):
        for event in _events([message] if not said[place] else []):
            if event.came:
                read.add(event.text, whole=event.whole or place < last)
    return last == len(said) or read.holds(question)


def error_of(line: str) -> str:
    """Return the line that tells an error without its figures; "" for one that says too little to be known again."""
    plain = _NUMBER.sub("", line)
    return plain if len(plain.split()) >= _TELLING else ""


def _path(given: Mapping[str, Any]) -> str:
    return next((given[key] for key in _PATHS if isinstance(given.get(key), str)), "")


def _patch(given: Mapping[str, Any]) -> str:
    told = given.get("patch")
    return told if isinstance(told, str) else next((each for each in _words(given) if PATCH in each), "")


def _command(given: Mapping[str, Any], read: WasRead) -> str:
    words = _words(given)
    # A shell that was given a script: `bash -lc "..."`.
    said = words[-1] if len(words) == 3 and words[1].startswith("-") else " ".join(words)
    said = said[:_READ]
    while (heredoc := _HEREDOC.search(said)) is not None:
        said = f"{said[: heredoc.start()]}{heredoc['line'] or ''}{said[heredoc.end() :]}"
    return _plain(_PIECES.sub(lambda found: _kept(found, read), said))


def _kept(piece: re.Match[str], read: WasRead) -> str:
    """Return what is kept of a piece of a command: no remark, no words in it that were read, none that it only says."""
    if quote := piece["quote"]:
        return f"{quote}{_unread(_REMARK.sub('', piece['inner']), read)}{quote}"
    return piece["says"] or ("" if piece["remark"] else _unread(piece[0], read))


def _unread(text: str, read: WasRead) -> str:
    return "" if read.repeats(text) else text


def _words(given: Mapping[str, Any]) -> list[str]:
    said = next((given[key] for key in _COMMANDS if given.get(key)), "")
    return [each for each in (said if isinstance(said, list) else [said]) if isinstance(each, str)]


def _writes(given: Mapping[str, Any]) -> bool:
    """Return whether something is written into a file, or taken out of it."""
    return isinstance(given.get("edits"), list) or any(isinstance(given.get(key), str) for key in _TEXTS)


def _written(given: Mapping[str, Any], keys: Sequence[str]) -> str:
    edits = given.get("edits")
    several = [each for each in edits if isinstance(each, Mapping)] if isinstance(edits, list) else []
    found = [each.get(key) for each in (given, *several) for key in keys]
    return "\n".join(text for text in found if isinstance(text, str))


def _patched(patch: str, where: tuple[str, str], read: WasRead) -> Iterator[Step]:
    """Yield the edits of a patch in Codex's form."""
    for part in patch.split("\n*** ")[1:]:
        head, _, body = part.partition("\n")
        path = _inside(head.partition(" File: ")[2].strip(), *where)
        new, old = ("\n".join(line[1:] for line in body.split("\n") if line.startswith(sign)) for sign in "+-")
        if path:
            yield Step(EDITED, path, more=_brought(new, old, read))


def _open_item(item: object) -> str:
    if not isinstance(item, Mapping) or item.get("status") == "completed":
        return ""
    return _plain(str(item.get("content") or item.get("step") or ""))


def _root(folder: str) -> str:
    """Return the folder of the repository around a folder, or the folder itself."""
    inner = Path(folder)
    around = (inner, *inner.parents) if inner.is_absolute() else ()
    return str(next((each for each in around if (each / ".git").exists()), folder))


def _inside(path: str, folder: str, root: str) -> str:
    """Return a path as it stands in the project, with slashes; "" for one outside of it.

    `folder`: where the agent was, which the path may start from; `root`: the project's.
    """
    path, folder, root = (_slashed(each) for each in (path, folder, root))
    if not root:
        return _label(_name(path) if path.startswith(("/", "~")) or _DRIVE.match(path) else path)
    if not _DRIVE.match(path):
        path = posixpath.join(folder, path)
    found = _slashed(posixpath.normpath(path))
    inside = found.removeprefix(start) if found.startswith(start := f"{root.rstrip('/')}/") else ""
    return _label(inside) or _label(_name(inside))


def _slashed(path: str) -> str:
    """Return a path with slashes, the letter of a drive small, as hosts write it either way."""
    return _DRIVE.sub(lambda drive: drive[0].lower(), _plain(path).replace("\\", "/"))


def _label(text: str) -> str:
    """Return the name of a path or a branch, or nothing where it could be a sentence."""
    shown = _plain(text)
    return shown if _LABEL.fullmatch(shown) else ""


def _brought(new: str, old: str, read: WasRead) -> str:
    """Return the first lines that an edit brought in, on one line: none that were read elsewhere."""
    known = {line.strip() for line in old.split("\n")}
    lines = (line.strip() for line in new[:_READ].split("\n") if any(map(str.isalnum, line)))
    fresh = [line for line in lines if line not in known and not read.holds(line)]
    return clip(_plain(" / ".join(fresh[:6])), _LINE)


def _telling(output: str) -> str:
    """Return the line of an output that says why a command failed: paths in it by their names alone."""
    parts = (output[:_READ], output[_READ:][-_READ:])
    shown = listed("capture", "acts", "ansi").sub("", clean("\n".join(parts)))
    lines = [line.strip() for line in shown.split("\n") if any(map(str.isalnum, line))] or [""]
    empty = listed("capture", "acts", "empty")
    signs = (listed("capture", "acts", name) for name in ("telling", "hinting"))
    places = [place for sign in signs for place, line in enumerate(lines) if sign.search(line)]
    place = next((each for each in [*places, *reversed(range(len(lines)))] if not empty.search(lines[each])), 0)
    found = lines[place : place + 2]
    # A line that only announces is told with the next one.
    announces = found and (len(found[0].split()) < 4 or found[0][-1] in ":]")
    told = _plain(" ".join(found if announces else found[:1])[:_READ])
    return clip(_PATHLIKE.sub(lambda path: _name(path[0]), told), _LINE)


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _own(text: str, read: WasRead) -> str:
    """Return what an agent says in words of its own: no code, nothing that it repeats of what it read, no orders."""
    if not read.whole:
        return ""
    kept = [_plain(each) for each in _BETWEEN.split(outside(text)[:_READ])]
    return "\n".join(each for each in kept if each and not read.holds(each))


def _plain(text: str) -> str:
    """Return a text on one line, without secrets, signs of a terminal and fences; nothing of one that gives orders."""
    shown = listed("capture", "acts", "ansi").sub("", clean(text))
    return "" if _orders(shown) else redact(" ".join(shown.replace("`", "'").split())).text


def _orders(text: str) -> bool:
    """Return whether a text tells a model what to do, also as a name: "always-run-it-first"."""
    told = (text, _JOINTS.sub(" ", text))
    return any(orders_in(each) or listed("capture", "acts", "orders").search(each) for each in told)


# What is told of it.


def _texts(signs: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts that a record keeps under a name."""
    found = signs.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _changed(past: Sequence[Step], before: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the files that were changed and not put back, and the messages of commits."""
    files: dict[str, None] = dict.fromkeys(_texts(before, "files"))
    commits = _texts(before, "commits")
    for step in past:
        if step.kind == EDITED:
            files = _last(files, [step.text])
        elif step.kind == RAN and step.ended == 0:
            for path in _reverted(step.text, files):
                files.pop(path, None)
            for found in listed("capture", "acts", "edits").finditer(step.text):
                paths = (_inside(word, *step.where) for word in map(_bare, found[1].split()) if _is_path(word))
                files = _last(files, [path for path in paths if path])
            commits += [message for found in listed("capture", "acts", "commits").finditer(step.text)
                         if (message := next(filter(None, found.groups()), "")) and "$(" not in message]  # fmt: skip
    return list(files), commits


def _last(files: Mapping[str, None], changed: Sequence[str]) -> dict[str, None]:
    return {**{path: None for path in files if path not in changed}, **dict.fromkeys(changed)}


def _bare(word: str) -> str:
    return word.strip("\"'")


def _is_path(word: str) -> bool:
    return bool(PurePosixPath(word).suffix) and _label(word) == word


def _reverted(command: str, files: Iterable[str]) -> list[str]:
    found = listed("capture", "acts", "reverts").search(command)
    if found is None:
        return []
    paths = [_bare(word).rstrip("/") for word in found[1].split()]
    return [path for path in files if not paths or any(
        each == "." or path == each or path.startswith(f"{each}/") for each in paths)]  # fmt: skip


def _worked(past: Sequence[Step], files: Sequence[str], commits: Sequence[str], before: Sequence[str]) -> Record:
    branch = _branch(past) or "".join(before[-1:])
    committed = [clip(_plain(each), _COMMAND) for each in commits[-1:]]
    shown = ", ".join(clip(path, _PATH) for path in files[-_FILES:])
    more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
    changed = f"changed {shown}{more}" if files else "changed no files"
    kept = f'; committed "{committed[0]}"' if committed else ""
    on = f"on branch {clip(branch, _PATH)} " if branch else ""
    signs = {"files": list(files[-_KEPT:]), "commits": committed, "branch": [branch] if branch else []}
    return Record(WORK, clip(f"The agent {on}{changed}{kept}.", LONGEST), signs)


def _branch(past: Sequence[Step]) -> str:
    branch = ""
    for step in past:
        branch = step.branch or branch
        found = listed("capture", "acts", "switches").search(step.text) if step.kind == RAN else None
        if found and step.ended == 0:
            branch = found[1]
    return _label(branch)


def _ended(past: Sequence[Step], ran: Sequence[int], before: Mapping[str, Any]) -> Record | None:
    """Return how the commands ended that failed, and what passed last."""
    failing = dict(zip(_texts(before, "failing"), _texts(before, "errors"), strict=False))
    passes = [past[place].text for place in reversed(ran) if not past[place].ended]
    gone = [each for each in failing if any(_same(each, passed) for passed in passes)]
    mended = dict.fromkeys([*_texts(before, "mended"), *gone], "")
    broken = {each: error for each, error in failing.items() if each not in mended}
    for place in ran:
        step = past[place]
        if step.ended and not _looks(step.text):
            passed = any(past[each].ended == 0 for each in _again(past, ran, place))
            for ends in (mended, broken):
                ends.pop(_short(step.text), None)
            (mended if passed else broken)[_short(step.text)] = "" if passed else clip(step.more, _PATH)
    good = [*(_short(passed) for passed in passes if _tells(passed)), *_texts(before, "passed")]
    passed_last = list(dict.fromkeys(each for each in good if each not in mended and each not in broken))[:2]
    told = [
        _several("failed, then passed", mended),
        _several("still failing", broken),
        _several("passed", passed_last),
    ]
    text = "; ".join(filter(None, told))
    signs = {
        "mended": list(mended)[-_KEPT:], "failing": list(broken)[-_KEPT:], "errors": list(broken.values())[-_KEPT:],
        "passed": passed_last,
    }  # fmt: skip
    return Record(RUNS, clip(f"{text[:1].upper()}{text[1:]}.", LONGEST), signs) if text else None


def _several(what: str, commands: Iterable[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in list(commands)[-5:])
    return f"{what}: {shown}" if shown else ""


def _left(past: Sequence[Step]) -> Record | None:
    """Return what the agent said last, of a long text what is left to do, and the rest of its plan."""
    plan = next((step.text for step in reversed(past) if step.kind == PLANNED), "")
    said = next((step.text for step in reversed(past) if step.kind == SAID), "")
    if len(said) > 2 * _WORDS:
        own = said.split("\n")
        said = "\n".join([each for each in own if listed("capture", "acts", "left").search(each)] or own[-2:])
    told = clip(_line(said), 2 * _WORDS), f"Planned: {clip(plan, _WORDS)}" if plan else ""
    return Record(LEFT, f"At the end the agent said: {' '.join(filter(None, told))}") if any(told) else None


def _line(said: str) -> str:
    return " ".join(said.split("\n"))


def _failures(past: Sequence[Step], ran: Sequence[int]) -> Iterator[Record]:
    """Yield what failed, each error once, with what mended it."""
    found: dict[tuple[str, str], Record] = {}
    for place in ran:
        step = past[place]
        if not step.ended or _looks(step.text):
            continue
        error = _NUMBER.sub("", step.more)
        end = next(iter(_again(past, ran, place)), len(past))
        if end < len(past) and past[end].ended and _NUMBER.sub("", past[end].more) == error:
            continue  # it was run once more, and nothing was mended
        key = (_short(step.text), error)
        found.pop(key, None)
        found[key] = _failure(past, place, end)
    yield from found.values()


def _failure(past: Sequence[Step], place: int, end: int) -> Record:
    step, files, commands = past[place], dict[str, str](), dict[str, None]()
    for each in past[place + 1 : end]:
        if each.kind == EDITED:
            files[each.text] = " / ".join(filter(None, (files.get(each.text), each.more)))
        elif each.kind == RAN and each.ended == 0:
            for path in _reverted(each.text, files):
                del files[path]
            if _tells(each.text):
                commands[f"`{_short(each.text)}`"] = None
    later = {path for each in past[end:] if each.kind == RAN and not each.ended for path in _reverted(each.text, files)}
    back = " (reverted later)" if files and later.issuperset(files) else ""
    names = [_name(path) for path in files]
    did = [f"{name} ({clip(line, _PATH)})" if line else name for name, line in zip(names, files.values(), strict=True)]
    told = [f"`{_short(step.text)}` failed: {step.more}".rstrip(": .")]
    by = ""
    if end < len(past):
        ended, other = "That error was gone" if past[end].ended else "It then passed", _short(past[end].text)
        after = clip(", ".join((*did[-3:], *list(commands)[-2:])), _DID)
        by = f" after {after}{back}" if after else f" as `{other}`" if other != _short(step.text) else ""
        told.append(f"{ended}{by}")
    passed = any(each.kind == RAN and each.ended == 0 and _same(step.text, each.text) for each in past[end:])
    if said := clip(_line("\n".join(each.text for each in past[place + 1 : end] if each.kind == SAID)), _WORDS):
        told.append(f"The agent: {said}")
    mended = bool(by) and passed and not back
    signs = {"command": _short(step.text), "error": step.more, "files": list(files), MENDED: mended}
    return Record(FAILED, clip(". ".join(told), LONGEST), signs)


def _again(past: Sequence[Step], ran: Sequence[int], place: int) -> list[int]:
    """Return where the same command was run again later."""
    return [each for each in ran if each > place and _same(past[place].text, past[each].text)]


def _same(first: str, later: str) -> bool:
    """Return whether a later command does what a former one did: the same, or more of it."""
    ours, theirs = _key(first), _key(later)
    broader = len(theirs) > 1 and set(theirs) <= set(ours)
    covers = len(ours) > 2 and all(any(word.startswith(each) for word in theirs) for each in ours)
    return ours == theirs or broader or covers


@lru_cache(maxsize=2_048)
def _key(command: str) -> tuple[str, ...]:
    return tuple(word for word in map(_bare, _head(command).split()) if not word.startswith("-"))


@lru_cache(maxsize=2_048)
def _head(command: str) -> str:
    shown = listed("capture", "acts", "before").sub("", command[:_READ])
    return listed("capture", "acts", "behind").sub("", shown) or command


def _short(command: str) -> str:
    return clip(_head(command), _COMMAND)


@lru_cache(maxsize=2_048)
def _looks(command: str) -> bool:
    """Return whether a command only looks at something."""
    edits = listed("capture", "acts", "edits").search(command[:_READ])
    return not edits and bool(listed("capture", "acts", "looks").search(_head(command)))


def _tells(command: str) -> bool:
    return not _looks(command) and not _head(command).startswith("git ")
