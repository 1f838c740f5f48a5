"""``carrel approve``: saying yes to one call that waits."""

from __future__ import annotations

from typing import Any

import click

from carrel.cli.commands.approvals import answer_one, answer_options
from carrel.cli.console import server_options


@click.command()
@click.argument("id")
@answer_options
@server_options
def approve(id: str, **given: Any) -> None:
    """Approve the call ID that waits, and say what came of it.

    The same as `carrel approvals approve ID`.
    """
    answer_one(id, True, given)
