"""How commands speak: results on stdout, everything else on stderr, bars where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    pass

Watch = Callable[[str, int, int], None]
Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

FAILED = 1
"""The exit code of a command that found something wrong, or could not do its work."""


class PathArgument(click.Path):
    """The name of a file or directory; what no system could take for one is a mistake in usage."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return super().convert(value, param, ctx)
        except ValueError:
            self.fail(f"{value!a} is no name of a file or directory", param, ctx)


def store_options(command: Command) -> Command:
    """Options of every command that works on a store; what is not given comes from settings."""
    command = click.option("--data", help="Directory for the database, bytes and keys.")(command)
    command = click.option("--database-url", help="sqlite:///file or postgresql://…")(command)
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(command)


def server_options(command: Command) -> Command:
    """Options of every command that speaks to a server; what is not given comes from settings."""
    command = click.option("--token", help="Token to come with (rather CARREL_TOKEN).")(command)
    command = click.option("--url", help="The server's address.")(command)
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(command)


def run(
    work: Callable[[], Coroutine[Any, Any, Result]],
    *,
    as_json: bool,
    expects: tuple[type[Exception], ...] = (),
    failed: int = FAILED,
) -> Result:
    """Do it; what is refused or damaged is said in a line, and not in a traceback."""
    import asyncio  # noqa: PLC0415 - so that --help stays quick

    from carrel.core.errors import Refusal  # noqa: PLC0415 - as above
    from carrel.ports import CorruptContent  # noqa: PLC0415 - as above
    from carrel.wiring.cli_settings import StoreUnavailable  # noqa: PLC0415 - as above

    foreseen: tuple[type[Exception], ...] = (
        Refusal,
        CorruptContent,
        StoreUnavailable,
        OSError,
        *expects,
    )
    try:
        return asyncio.run(work())
    except foreseen as problem:
        fail(str(problem), as_json=as_json, code=failed)


def fail(problem: str, *, as_json: bool, code: int = FAILED) -> NoReturn:
    """Say what is wrong, and leave."""
    if as_json:
        print_json({"ok": False, "problem": problem})
    else:
        click.ClickException(problem).show()
    sys.exit(code)


def print_json(result: Any) -> None:
    """Say a result in JSON."""
    import json  # noqa: PLC0415 - so that --help stays quick

    click.echo(json.dumps(result, ensure_ascii=False, indent=2))


@contextmanager
def progress_bars() -> Iterator[Watch]:
    """A Watch that draws bars on a terminal, and elsewhere says a line for all that is done."""
    if not sys.stderr.isatty():
        yield _say_when_done
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

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield watch


def _say_when_done(what: str, done: int, total: int) -> None:
    if done == total:
        click.echo(f"{what}: {done} of {total}", err=True)


def size(number: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
