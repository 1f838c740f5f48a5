"""``carrel sandboxes``: where commands of agents run."""

from __future__ import annotations

import click

from carrel.cli.account_commands import Row, add_record_commands


@click.group()
def sandboxes() -> None:
    """Where commands of agents run, and who is asked before."""


def _told(row: Row) -> tuple[str, str]:
    return row["config"]["provider"], row["config"]["permissionMode"]


add_record_commands(sandboxes, "sandbox", _told)
