"""Somebody who has just installed perdure: an empty home, nothing set, and the pages of the documentation."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (DOCS / "first-minute.md", DOCS / "tutorial-python.md")
"""Pages of which each section is for somebody who has just installed perdure."""
TUTORIALS = tuple(DOCS / f"tutorial-{host}.md" for host in ("claude-code", "codex", "openclaw"))
"""Pages that are gone through as a whole."""
OPENCLAW = ROOT / "tests" / "hosts" / "fake_openclaw.py"
STEP_SECONDS = 600.0
PASSED_ON = re.compile(r"PIP_.*|.*_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE", re.IGNORECASE)
"""Variables without which pip may not reach its index here."""
OFFLINE = """
import sys

def refuse(event, arguments):
    if event == "socket.getaddrinfo" or (event == "socket.connect" and isinstance(arguments[1], tuple)):
        raise OSError(f"there is no network: {event}")

sys.addaudithook(refuse)
"""
"""A `sitecustomize` by which no Python process reaches beyond its machine."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, or a whole tutorial.

    Attributes:
        title: its heading.
        steps: language and source of what is to be run, in its order.
        answer: lines that must come out of it.
    """

    title: str
    steps: tuple[tuple[str, str], ...]
    answer: tuple[str, ...]

    @property
    def extra(self) -> str | None:
        """The extra that it installs, if any."""
        found = re.search(r"perdure\[([\w-]+)\]", "\n".join(text for _, text in self.steps))
        return found[1] if found else None


def sections() -> list[Section]:
    """Return the parts of the pages that have something to run, then the tutorials."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    parts = [part for text in texts for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    parts += [page.read_text(encoding="utf-8").removeprefix("# ") for page in TUTORIALS]
    found = [(part.partition("\n")[0], re.findall(r"^```(\w+)\n(.*?)^```$", part, re.S | re.M)) for part in parts]
    return [
        Section(
            title,
            tuple((language, text) for language, text in blocks if language in ("sh", "python")),
            tuple(line for language, text in blocks if language == "text" for line in text.splitlines()),
        )
        for title, blocks in found
        if any(language in ("sh", "python") for language, _ in blocks)
    ]


@dataclass(frozen=True, slots=True)
class Ran:
    """A step that was run.

    Attributes:
        language, source: what.
        output: of both streams.
        seconds: how long it took, on the clock.
        cpu_seconds: of its process and of those that it has waited for.
    """

    language: str
    source: str
    output: str
    seconds: float
    cpu_seconds: float

    @property
    def install(self) -> bool:
        """Whether it installed something."""
        return _installs(self.source)


class Newcomer:
    """Goes through the pages. Only an installation reaches the network."""

    def __init__(self, home: Path, programs: Path, site: Path, release: Path | None = None) -> None:
        """Move in.

        Args:
            home: an empty folder.
            programs: where `perdure`, `python` and `pip` are.
            site: a folder on Python's path of all processes, which is written to.
            release: what `pip install perdure` installs; None: nothing is installed.
        """
        self.home = home
        self._site = site / "sitecustomize.py"
        home.mkdir(parents=True)
        passed = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
        places = {"HOME": str(home), "PATH": f"{home / 'bin'}{os.pathsep}{programs}{os.pathsep}{os.defpath}"}
        self._environ = {"LANG": "C.UTF-8", **passed, **places}
        self._release = release

    def own_openclaw(self) -> None:
        """Give them an OpenClaw: its command line as far as an install needs it, and its config."""
        config = self.home / ".openclaw" / "openclaw.json"
        config.parent.mkdir()
        config.write_text(json.dumps({"gateway": {"port": 18789}}))
        program = self.home / "bin" / "openclaw"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nOPENCLAW_CONFIG_PATH="{config}" exec "{sys.executable}" "{OPENCLAW}" "$@"\n')
        program.chmod(0o755)

    def own_hosts(self, section: Section) -> None:
        """Give them the hosts that a section is about."""
        if section.title == "OpenClaw":
            self.own_openclaw()
        if section.title in {"Claude Code", "Codex"}:
            # As it leaves it when it is first started.
            (self.home / f".{section.title.partition(' ')[0].lower()}").mkdir()

    def run(self, language: str, source: str) -> Ran:
        """Run a code block in a process of its own.

        Raises:
            AssertionError: it failed; the message has its output.
        """
        command = ["python", "-c", source] if language == "python" else ["sh", "-ec", source]
        if _installs(source):
            self._site.unlink(missing_ok=True)
            command[-1] = source.replace("perdure", str(self._release))
        else:
            self._site.write_text(OFFLINE)
        started, used = time.perf_counter(), _cpu_of_children()
        done = subprocess.run(
            command, cwd=self.home, env=self._environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=STEP_SECONDS, executable=self._program(command[0]),
        )  # fmt: skip
        seconds, cpu_seconds = time.perf_counter() - started, _cpu_of_children() - used
        assert done.returncode == 0, f"{source}\n{done.stdout}"
        return Ran(language, source, done.stdout, seconds, cpu_seconds)

    def go_through(self, section: Section, *, install: bool = True) -> list[Ran]:
        """Run a section.

        Args:
            section: which.
            install: whether to install what it says; False: it is there.

        Raises:
            AssertionError: a step failed, or the answer did not come.
        """
        ran = [self.run(*step) for step in section.steps if install or not _installs(step[1])]
        output = "\n".join(each.output for each in ran)
        for line in section.answer:
            assert line in output, f"{section.title}: {line!r} is not in\n{output}"
        return ran

    def _program(self, name: str) -> str:
        # `subprocess` would look it up on the path of this process.
        folders = self._environ["PATH"].split(os.pathsep)
        return next(str(Path(folder) / name) for folder in folders if (Path(folder) / name).exists())


def _installs(source: str) -> bool:
    return source.startswith("pip install ")


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
