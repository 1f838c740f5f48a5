"""Command output: results on stdout, everything else on stderr, progress bars."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    pass

ProgressCallback = Callable[[str, int, int], None]
Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

EXIT_FAILED = 1
"""Exit code of a command that failed or found problems."""


class PathArgument(click.Path):
    """Path of a file or directory; an invalid name is a usage error."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(value, param, ctx)
        except ValueError:
            self.fail(f"{value!a} is not a valid file or directory name", param, ctx)


class Instant(click.DateTime):
    """A day, or a time to the second, in UTC."""

    def __init__(self) -> None:
        super().__init__(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        moment: datetime = super().convert(value, param, ctx)
        return moment.replace(tzinfo=UTC)


def store_options(command: Command) -> Command:
    """Options of commands that open a store. Unset options come from settings."""
    command = click.option("--data", help="Directory for the database, bytes and keys.")(command)
    command = click.option("--database-url", help="sqlite:///file or postgresql://…")(command)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def server_options(command: Command) -> Command:
    """Options of commands that call a server. Unset options come from settings.

    A subcommand takes those that it lacks from its group: they may stand before it or after it.
    """
    command = click.option("--token", callback=_inherit, help="API token. Prefer CARREL_TOKEN.")(
        command
    )
    command = click.option("--url", callback=_inherit, help="Server URL.")(command)
    return click.option("--json", "as_json", is_flag=True, callback=_inherit, help="Print JSON.")(
        command
    )


def _inherit(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value or context.parent is None:
        return value
    return context.parent.params.get(parameter.name or "") or value


def run(
    work: Callable[[], Coroutine[Any, Any, Result]],
    *,
    as_json: bool,
    expected: tuple[type[Exception], ...] = (),
    exit_code: int = EXIT_FAILED,
) -> Result:
    """Run `work`; print expected errors as one line and exit with `exit_code`."""
    import asyncio  # noqa: PLC0415 - so that --help stays quick

    from carrel.core.errors import Refusal  # noqa: PLC0415 - as above
    from carrel.ports import CorruptContent  # noqa: PLC0415 - as above
    from carrel.wiring.cli_settings import StoreUnavailable  # noqa: PLC0415 - as above

    expected_errors: tuple[type[Exception], ...] = (
        Refusal,
        CorruptContent,
        StoreUnavailable,
        OSError,
        *expected,
    )
    try:
        return asyncio.run(work())
    except expected_errors as problem:
        fail(str(problem), as_json=as_json, code=exit_code)


def fail(problem: str, *, as_json: bool, code: int = EXIT_FAILED) -> NoReturn:
    """Print the problem and exit with `code`."""
    if as_json:
        print_json({"ok": False, "problem": problem})
    else:
        click.ClickException(problem).show()
    sys.exit(code)


def print_json(result: Any) -> None:
    """Print a result as indented JSON."""
    import json  # noqa: PLC0415 - so that --help stays quick

    click.echo(json.dumps(result, ensure_ascii=False, indent=2))


@contextmanager
def progress_bars() -> Iterator[ProgressCallback]:
    """Yield a callback that draws progress bars on a terminal.

    If stderr is no terminal, it prints one line per completed task.
    """
    if not sys.stderr.isatty():
        yield _print_when_complete
        return
    from rich.console import Console  # noqa: PLC0415 - so that --help stays quick
    from rich.progress import (  # noqa: PLC0415 - as above
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def on_progress(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=done)

        yield on_progress


def _print_when_complete(label: str, done: int, total: int) -> None:
    if done == total:
        click.echo(f"{label}: {done} of {total}", err=True)


def format_size(byte_count: float) -> str:
    """Format a number of bytes for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if byte_count < 1024 or unit == "GiB":
            break
        byte_count /= 1024
    return f"{byte_count:.0f} {unit}" if unit == "bytes" else f"{byte_count:.1f} {unit}"
