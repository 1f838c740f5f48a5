"""`carrel completion`: prints the script that completes commands in a shell."""

from __future__ import annotations

import click

from carrel.cli.completion import COMPLETION_VARIABLE, SHELLS


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes carrel in a shell.

    It completes commands, options, and from the server the slugs of agents and templates, names of
    other records and paths of files. In bash or zsh: eval "$(carrel completion bash)" in the
    start-up file; in fish: carrel completion fish > ~/.config/fish/completions/carrel.fish.
    """
    from carrel.cli.completion import completion_classes  # noqa: PLC0415 - so that --help stays quick

    root = context.find_root()
    completer = completion_classes()[shell](root.command, {}, "carrel", COMPLETION_VARIABLE)
    click.echo(completer.source(), nl=False)
