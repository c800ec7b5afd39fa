"""What does an agent know of its last session in a project, and of a failure that it meets again?

python -m bench coding [FOLDER] [--json] [--detail]

FOLDER holds scripts of coding sessions (training/data/README.md). Each becomes a transcript of Claude Code, every third
of Codex, and is played through the hooks. Then sessions of the same project begin.

where: sessions that open with the branch, the files, how commands ended and what was left open, each told well enough
(branch and nothing invented; half of the files, two for a short list; half of the commands that failed; a third of the
words of what was open); branch, files, commands, open: each alone. fixed: failures met again for which the opening or
the prompt's block shows what mended them; by_prompt: the block alone. quiet: other prompts that bring up nothing of the
session. never: strings of pasted text, pages and outputs that were kept.

Then a next session runs the same commands and makes the same edits, with reminders before tools. before_tool: commands
that had failed and passed in the end, and files that were changed between, for which one of the files or commands that
came between has been shown when the tool runs; needless: other commands and files before which something was shown.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

import click

from bench.measuring import share
from bench.program import program
from perdure.engine.repository import project_of
from perdure.hosts.command.dialects import DIALECTS
from perdure.hosts.command.hooks import CommandHooks
from perdure.store.agent_records import METHOD
from perdure.text.normalise import cut_ending, match_terms

FOLDER = Path("training/data/development/coding")
CODEX = 3
"""Every so manyth script is played by Codex."""
AT = "2026-11-25T10:00:00.000Z"
ASKED = "where were we?"
ACTS = ("Bash", "Edit", "Write")
LOOKS = ("git log", "git status", "git diff", "git blame", "grep", "ls", "cat", "head", "tail", "find")
"""How commands begin that mend nothing."""
Script = Mapping[str, Any]


def claude_lines(script: Script, session: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a script's transcript as Claude Code writes them, a line or two for each event."""
    frame = {
        "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": script["project"],
        "sessionId": session, "version": "2.1.330", "gitBranch": script["branch"], "timestamp": AT,
    }  # fmt: skip
    for number, event in enumerate(script["events"]):
        if "user" in event:
            yield {**frame, "type": "user", "message": {"role": "user", "content": event["user"]}, "uuid": f"u{number}"}
            continue
        part: dict[str, Any] = {"type": "text", "text": event.get("assistant", "")}
        if "tool" in event:
            part = {"type": "tool_use", "id": f"toolu_{number}", "name": event["tool"], "input": event["input"]}
        said = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [part]}
        yield {**frame, "type": "assistant", "message": said, "uuid": f"a{number}"}
        if "tool" in event:
            failed, text = bool(event.get("exit")), event.get("output", "")
            result: Any = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
            if event["tool"] != "Bash":
                result = {"filePath": event["input"].get("file_path")}
            elif failed and not text.startswith("[Request interrupted"):
                text = f"Exit code {event['exit']}\n{text}"
                result = f"Error: {text}"
            told = {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": text, "is_error": failed}
            yield {**frame, "type": "user", "message": {"role": "user", "content": [told]}, "toolUseResult": result,
                   "uuid": f"r{number}"}  # fmt: skip


def codex_lines(script: Script, session: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a script's rollout as Codex writes them."""
    git = {"commit_hash": "0" * 40, "branch": script["branch"]}
    meta = {"id": session, "timestamp": AT, "cwd": script["project"], "originator": "codex_cli_rs", "source": "cli"}
    yield {"timestamp": AT, "type": "session_meta", "payload": {**meta, "git": git}}
    for number, event in enumerate(script["events"]):
        for payload in _codex_items(event, f"call_{number}"):
            yield {"timestamp": AT, "type": "response_item", "payload": payload}


def _codex_items(event: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    if "tool" not in event:
        role = "user" if "user" in event else "assistant"
        kind = "input_text" if role == "user" else "output_text"
        yield {"type": "message", "role": role, "content": [{"type": kind, "text": event[role]}]}
        return
    given = event["input"]
    if event["tool"] in ("Edit", "Write"):
        old, new = given.get("old_string", ""), given.get("new_string", given.get("content", ""))
        verb = "Update" if old else "Add"
        lines = [*(f"-{line}" for line in old.split("\n") if old), *(f"+{line}" for line in new.split("\n"))]
        patch = "\n".join(["*** Begin Patch", f"*** {verb} File: {given['file_path']}", *lines, "*** End Patch"])
        yield {"type": "custom_tool_call", "name": "apply_patch", "call_id": name, "input": patch}
        done = {"output": "Success.", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}
        yield {"type": "custom_tool_call_output", "call_id": name, "output": json.dumps(done)}
        return
    command = given.get("command") or "cat " + str(given.get("file_path") or given.get("path") or given.get("url"))
    asked = {"command": command, "workdir": "."}
    yield {"type": "function_call", "name": "shell_command", "arguments": json.dumps(asked), "call_id": name}
    told = f"Exit code: {event.get('exit', 0)}\nWall time: 0.4 seconds\nOutput:\n{event.get('output', '')}"
    yield {"type": "function_call_output", "call_id": name, "output": told}


class Player:
    """Plays sessions of one project through the hooks of a host."""

    def __init__(self, home: Path, script: Script, host: str) -> None:
        self.script, self.host, self.home = script, host, home
        self.folder = home / "work"
        (self.folder / ".git").mkdir(parents=True)
        self.hooks = CommandHooks(
            home / "memory", timers=False, watch=False, scopes=[str(project_of(self.folder))], agent_log="remind"
        )

    def tell(self, session: str, name: str, **values: Any) -> str:
        """Deliver an event; return the block that the model is shown."""
        payload = {"session_id": session, "cwd": str(self.folder), "hook_event_name": DIALECTS[self.host].names[name],
                   **values}  # fmt: skip
        done = self.hooks.handle(name, self.host, payload, None, "cli")
        return done["hookSpecificOutput"]["additionalContext"] if done else ""

    def play(self) -> None:
        """Play the script as it happened: its transcript grows with each event."""
        path = self.home / f"rollout-{self.script['coding']}.jsonl"
        lines = codex_lines if self.host == "codex" else claude_lines
        told = {"transcript_path": str(path)}
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines(self.script, "first"))
        self.tell("first", "session-start", source="startup", **told)
        turn = 0
        for event in self.script["events"]:
            if "user" in event:
                turn += 1
                self.tell("first", "prompt", prompt=event["user"], prompt_id=f"p{turn}", **told)
            elif "assistant" in event:
                self.tell("first", "stop", last_assistant_message=event["assistant"], prompt_id=f"p{turn}", **told)
        self.tell("first", "session-end", reason="exit", **told)
        self.hooks.store().settle(60)

    def use(self, session: str, number: int, event: Mapping[str, Any]) -> str:
        """Have a tool about to run as in the script; return what the model is shown before it."""
        given = event["input"]
        if "file_path" in given:
            # The project lies elsewhere in this session.
            given = {**given, "file_path": given["file_path"].replace(self.script["project"], str(self.folder))}
            items = _codex_items({**event, "input": given}, "")
            given = {"command": next(items)["input"]} if self.host == "codex" else given
        return self.tell(session, "tool", tool_name=event["tool"], tool_input=given, tool_use_id=f"use_{number}")

    def begin(self, session: str, prompt: str) -> tuple[str, str]:
        """Begin a session with a prompt; return what it opens with and what comes up for the prompt."""
        opening = self.tell(session, "session-start", source="startup")
        return opening, self.tell(session, "prompt", prompt=prompt, prompt_id="p1")


def _words(text: str) -> set[str]:
    return set(map(cut_ending, match_terms(text, 256)))


def _name(path: str) -> str:
    return PureWindowsPath(path).name


def _before_tools(player: Player, total: Counter[str], wrong: list[str]) -> None:
    """Do in a next session what was done in the script, and look at what is shown before each tool."""
    name, events = player.script["coding"], [each for each in player.script["events"] if each.get("tool") in ACTS]
    due, failed = _due(events), {_about(event) for event in events if event.get("exit")}
    shown, seen = "", set[str]()
    for number, event in enumerate(events):
        about, block = _about(event), player.use("replayed", number, event)
        shown += block.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
        if about in due and about not in seen:
            met = any(fix in shown for fix in due[about])
            total.update({"due": 1, "met": met})
            wrong += [] if met else [f"{name} before {about[:80]}: {sorted(due[about])} {block[:300]}"]
        elif about in seen or about not in failed:
            total.update({"others": about not in seen, "needless": bool(block)})
            wrong += [f"{name} needless before {about[:80]}: {block[:600]}"] if block else []
        seen.add(about)


def _about(event: Mapping[str, Any]) -> str:
    about: str = event["input"].get("command") or event["input"]["file_path"]
    return about


def _due(events: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the commands that failed and passed in the end, and files changed between, with all that came between."""
    found: dict[str, set[str]] = {}
    for start, event in enumerate(events):
        command = _about(event)
        ends = [
            at for at in range(start + 1, len(events)) if _about(events[at]) == command and not events[at].get("exit")
        ]
        between = [each for each in events[start + 1 : ends[0]] if _about(each) != command] if ends else []
        files = {_about(each) for each in between if each["tool"] != "Bash"}
        ran = {_about(each) for each in between if each["tool"] == "Bash" and not each.get("exit")}
        ran = {each for each in ran if not each.startswith(LOOKS)}
        if event.get("exit") and (files or ran):
            for about in (command, *files):
                found.setdefault(about, set()).update(map(_name, files), ran)
    return found


def _where(shown: str, where: Mapping[str, Any]) -> dict[str, bool]:
    """Return which parts of an answer to "where were we?" stand in an opening."""
    files = [path.replace("\\", "/").rpartition("/")[2] in shown for path in where["files"]]
    # A command is told without what only wraps it, and clipped: its first words that are no options tell it.
    plain = shown.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    commands = [len(_words(each) & _words(plain)) >= 0.6 * len(_words(each)) for each in where["failed"]]
    wanted = _words(where["open"])
    return {
        "branch": f"branch {where['branch']} " in shown,
        "files": sum(files) >= max(min(2, len(files)), len(files) / 2),
        "commands": sum(commands) >= len(commands) / 2,
        "open": len(wanted & _words(plain)) >= len(wanted) / 3,
    }


@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=FOLDER)
@click.option("--detail", is_flag=True, help="Print each session, too.")
def bench(folder: Path, *, detail: bool) -> dict[str, Any]:
    """Measure what is known of a session when the next one begins."""
    scripts = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    total: Counter[str] = Counter()
    wrong: list[str] = []
    for number, script in enumerate(scripts):
        with tempfile.TemporaryDirectory() as home:
            player = Player(Path(home), script, "codex" if number % CODEX == CODEX - 1 else "claude-code")
            try:
                _measured(player, total, wrong)
            finally:
                player.hooks.close()
    return {
        "sessions": len(scripts),
        **{name: total[name] for name in ("where", "branch", "files", "commands", "open")},
        "fixed": share(total["fixed"], total["again"]),
        "by_prompt": share(total["by prompt"], total["again"]),
        "quiet": share(total["quiet"], total["other"]),
        "never": total["never"],
        "before_tool": share(total["met"], total["due"]),
        "needless": share(total["needless"], total["others"]),
        "tokens": round(total["tokens"] / max(1, len(scripts))),
        **({"wrong": wrong} if detail else {}),
    }


def _measured(player: Player, total: Counter[str], wrong: list[str]) -> None:
    script = player.script
    player.hooks.store().ready()
    player.play()
    opening, _ = player.begin("second", ASKED)
    lines = "\n".join(line for line in opening.split("\n") if line.startswith("[session"))
    right = _where(lines, script["where"])
    total.update({"where": all(right.values()), "tokens": len(lines) // 4, **right})
    if not all(right.values()):
        wrong.append(f"{script['coding']} {[name for name, is_right in right.items() if not is_right]} {lines}")
    for number, again in enumerate(script["again"]):
        opening, block = player.begin(f"again {number}", again["prompt"])
        by_prompt = any(each.lower() in block.lower() for each in again["fix"])
        fixed = by_prompt or any(each.lower() in opening.lower() for each in again["fix"])
        total.update({"again": 1, "by prompt": by_prompt, "fixed": fixed})
        if not fixed:
            wrong.append(f"{script['coding']} again: {again['prompt'][:80]} {again['fix']} {block[:300]}")
    for number, prompt in enumerate(script["other"]):
        _, block = player.begin(f"other {number}", prompt)
        loud = f"/{METHOD}" in block
        total.update({"other": 1, "quiet": not loud})
        if loud:
            wrong.append(f"{script['coding']} other: {prompt[:80]} {block[:600]}")
    kept = [fact.text for fact in player.hooks.store().admin.list(limit=500) if fact.extraction_method == METHOD]
    found = [each for each in script["never"] if any(each.lower() in text.lower() for text in kept)]
    total["never"] += len(found)
    wrong += [f"{script['coding']} never: {each}" for each in found]
    _before_tools(player, total, wrong)


main = program(bench)
if __name__ == "__main__":
    main()
