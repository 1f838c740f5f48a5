"""``carrel version``: which Carrel this is."""

from __future__ import annotations

import click

from carrel.core.version import VERSION


@click.command()
def version() -> None:
    """Say which version of Carrel this is."""
    click.echo(VERSION)
