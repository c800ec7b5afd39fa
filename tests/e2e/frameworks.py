"""The contract of the frameworks, each in an environment of its own: what some of them ask for cannot lie side by side.

    python -m tests.e2e.frameworks --dir DIR [NAME...]

Installs this checkout with the extra of each below DIR, once, and runs tests/hosts/test_frameworks.py there. Prints a
line each with the framework's version; exit code 0 if all hold. Only `pip install` reaches the network.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.e2e.package import ROOT, environment
from tests.hosts.test_frameworks import NEEDS

TOOLS = ("hypothesis", "pytest", "pytest-timeout")
PACKAGES = {"openai_agents": "openai-agents", "google_adk": "google-adk", "strands": "strands-agents",
            "agent_framework": "agent-framework-core", "claude_agent_sdk": "claude-agent-sdk"}  # fmt: skip
"""What a framework is called where it is published, if that is not the name of its module."""


@click.command()
@click.option("--dir", "folder", type=click.Path(file_okay=False, path_type=Path), required=True, help="For all of it.")
@click.argument("names", nargs=-1, type=click.Choice(list(NEEDS)))
def main(folder: Path, names: Sequence[str]) -> None:
    """Hold each framework, or those named, to the contract."""
    failed = [name for name in names or NEEDS if not holds(folder / name, name)]
    sys.exit(bool(failed))


def holds(folder: Path, name: str) -> bool:
    """Install a framework, if that is not done, run the contract, and print how it went."""
    python = folder / "bin" / "python"
    if not python.exists():
        environment(folder)
        extra = name.replace("_", "-")
        subprocess.run([python, "-m", "pip", "install", "-qq", "-e", f"{ROOT}[{extra}]", *TOOLS], check=True)
    told = subprocess.run(
        [python, "-c", f"from importlib.metadata import version; print(version({PACKAGES.get(name, name)!r}))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    # Warnings of the frameworks are theirs, here and in their dependencies.
    options = ("-q", "-W", "default", "-p", "no:cacheprovider", "-k", name)
    done = subprocess.run(
        [python, "-m", "pytest", *options, "tests/hosts/test_frameworks.py"],
        cwd=ROOT, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    click.echo(f"{'ok' if done.returncode == 0 else 'FAILED':6} {name} {told.stdout.strip()}")
    if done.returncode:
        click.echo(done.stdout[-3000:])
    return done.returncode == 0


if __name__ == "__main__":
    main()
