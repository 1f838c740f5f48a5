"""``carrel serve``: the server, and what its operator needs to begin."""

from __future__ import annotations

import sys
from typing import Any

import click


@click.command()
@click.option("--data", help="Directory for the database, bytes and keys.")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--workers", type=int, help="Server processes.")
@click.option("--demo", is_flag=True, help="Fill an empty store with a small company to look at.")
def serve(demo: bool, **given: Any) -> None:
    """Serve this store over HTTP until told to stop."""
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - keeps --help quick
    from carrel.wiring.server import StartupBanner, run  # noqa: PLC0415 - so that --help stays quick

    def tell(welcome: StartupBanner) -> None:
        click.echo(f"Carrel is at   {welcome.url}")
        click.echo(f"Sign in with   {welcome.link}   (good once, for an hour)")
        if welcome.token:
            click.echo(f"Owner's token  {welcome.token}   (shown this once: keep it)")
        sys.stdout.flush()

    try:
        run(load_settings(given), tell, demo=demo)
    except (StoreUnavailable, OSError) as problem:
        raise click.ClickException(str(problem)) from None
