"""`perdure completion`: what a shell needs to complete commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from perdure.errors import InputError

VARIABLE = "_PERDURE_COMPLETE"
"""By which the shell asks for completions; click derives it from the name of the program."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print what a shell needs to complete commands and options.

    Example: perdure completion bash >> ~/.bashrc
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise InputError(f"this version of click knows nothing of {shell}; update it: pip install -U click")
    script = kind(click.get_current_context().find_root().command, {}, "perdure", VARIABLE)
    # Not `source`: for bash that runs bash to find out its version, here, where it is not needed.
    click.echo(script.source_template % script.source_vars())
    return 0
