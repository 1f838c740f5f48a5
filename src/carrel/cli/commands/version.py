"""`carrel version`: prints the version."""

from __future__ import annotations

import click

from carrel.core.version import VERSION


@click.command()
def version() -> None:
    """Print the version of Carrel."""
    click.echo(VERSION)
