"""`carrel workspaces`: manages shared workspaces."""

from __future__ import annotations

import click

from carrel.cli.commands.records.account_records import Row, add_record_commands


@click.group()
def workspaces() -> None:
    """Manage workspaces: files that agents share."""


def _extra_columns(row: Row) -> tuple[str, ...]:
    return tuple(filter(None, (row.get("description"),)))


add_record_commands(workspaces, "workspace", _extra_columns)
