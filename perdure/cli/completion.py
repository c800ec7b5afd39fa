"""`perdure completion`: what a shell needs to complete commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from perdure.cli.output import Output

VARIABLE = "_PERDURE_COMPLETE"
"""By which the shell asks for completions; click derives it from the name of the program."""


@click.command()
@click.argument("shell")
def completion(shell: str) -> int:
    """Print what a shell needs to complete commands and options: bash, zsh or fish.

    The shell runs what is printed: `eval "$(perdure completion bash)"` in ~/.bashrc.

    Example: perdure completion bash
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"{shell!r} is no shell that is known here; name bash, zsh or fish")
    script = kind(click.get_current_context().find_root().command, {}, "perdure", VARIABLE)
    # Not `source`: for bash that runs bash to find out its version, here, where it is not needed.
    Output().raw(script.source_template % script.source_vars())
    return 0
