"""`carrel approve`: approves one tool call."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.commands.approvals import answer_approval, answer_options
from carrel.cli.console import server_options


@click.command()
@click.argument("id")
@answer_options
@server_options
def approve(id: str, **options: Any) -> None:
    """Approve the waiting call ID and print its result.

    The same as `carrel approvals approve ID`.
    """
    answer_approval(id, True, options)
