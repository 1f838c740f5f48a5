"""`carrel serve`: runs the server and prints the sign-in details."""

from __future__ import annotations

import os
import sys
from pathlib import Path as File
from typing import Any, Final

import click

LINK_FILE: Final = "sign-in-link"
TOKEN_FILE: Final = "owner-token"


@click.command()
@click.option("--data", help="Directory for the database, bytes and keys.")
@click.option("--host", help="Address to listen on.")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.")
@click.option("--workers", type=int, help="Server processes.")
@click.option("--demo", is_flag=True, help="Fill an empty store with demo data.")
def serve(demo: bool, **options: Any) -> None:
    """Serve this store over HTTP until stopped."""
    from carrel.cli.init_process import run_below_init  # noqa: PLC0415 - keeps --help quick

    run_below_init()
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - keeps --help quick
    from carrel.wiring.server import StartupBanner, run  # noqa: PLC0415 - so that --help stays quick

    def print_banner(banner: StartupBanner) -> None:
        click.echo(f"Server         {banner.url}")
        if banner.link:
            link = _printable(banner.link, settings.data_directory / LINK_FILE)
            click.echo(f"Sign-in link   {link}   (single use, expires in 1 hour)")
        else:
            click.echo("No sign-in link: the disk is full")
        if banner.token:
            token = _printable(banner.token, settings.data_directory / TOKEN_FILE)
            click.echo(f"Owner token    {token}   (shown only once)")
        sys.stdout.flush()

    try:
        settings = load_settings(options)
        run(settings, print_banner, demo=demo)
    except (StoreUnavailable, OSError) as problem:
        raise click.ClickException(str(problem)) from None


def _printable(secret: str, file: File) -> str:
    """Return the secret for a terminal; else write it to a private file and return the path.

    The output of a service is a log, with more readers than the data directory.
    """
    if sys.stdout.isatty():
        return secret
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(f"{secret}\n")
        temporary.replace(file)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        return f"not written to {file}: {problem.strerror}"
    return f"in {file}"
