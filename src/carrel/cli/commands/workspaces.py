"""``carrel workspaces``: files that agents share."""

from __future__ import annotations

import click

from carrel.cli.account_commands import Row, add_record_commands


@click.group()
def workspaces() -> None:
    """Files that agents share, each under an id."""


def _told(row: Row) -> tuple[str, ...]:
    return tuple(filter(None, (row.get("description"),)))


add_record_commands(workspaces, "workspace", _told)
