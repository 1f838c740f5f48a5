"""`carrel sandboxes`: manages sandboxes."""

from __future__ import annotations

import click

from carrel.cli.commands.records.account_records import Row, add_record_commands


@click.group()
def sandboxes() -> None:
    """Manage sandboxes: where agents run commands."""


def _extra_columns(row: Row) -> tuple[str, str]:
    return row["config"]["provider"], row["config"]["permissionMode"]


add_record_commands(sandboxes, "sandbox", _extra_columns)
