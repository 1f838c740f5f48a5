"""`carrel serve`: runs the server and prints the sign-in details."""

from __future__ import annotations

import sys
from typing import Any

import click


@click.command()
@click.option("--data", help="Directory for the database, bytes and keys.")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--workers", type=int, help="Server processes.")
@click.option("--demo", is_flag=True, help="Fill an empty store with demo data.")
def serve(demo: bool, **options: Any) -> None:
    """Serve this store over HTTP until stopped."""
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - keeps --help quick
    from carrel.wiring.server import StartupBanner, run  # noqa: PLC0415 - so that --help stays quick

    def print_banner(banner: StartupBanner) -> None:
        click.echo(f"Server         {banner.url}")
        click.echo(f"Sign-in link   {banner.link}   (single use, expires in 1 hour)")
        if banner.token:
            click.echo(f"Owner token    {banner.token}   (shown only once)")
        sys.stdout.flush()

    try:
        run(load_settings(options), print_banner, demo=demo)
    except (StoreUnavailable, OSError) as problem:
        raise click.ClickException(str(problem)) from None
