"""`carrel mv`, `cp`, `mkdir`, `rm` and `commit`: change files and directories together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path as Local
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from carrel.cli import formatting
from carrel.cli.commands.put import quote_etag
from carrel.cli.commit_changes import (
    CommitFileError,
    commit_to_json,
    parse_commit,
    print_changes,
    run_commit,
)
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import PathArgument, fail, print_json, server_options
from carrel.cli.names import FILE, OWNER
from carrel.cli.targets import Target, TargetError, TargetOwner, parse_path

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CommitResult
    from carrel_client.file_changes import FileChange

Command = TypeVar("Command", bound=Callable[..., Any])


class _TransferTarget(click.ParamType):  # type: ignore[type-arg]  # not every click has them
    """A path, which keeps a slash at its end."""

    name = "path"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            path = parse_path(value)
        except TargetError as problem:
            self.fail(str(problem), param, ctx)
        return f"{path}/" if value.endswith("/") else path


_TRANSFER_TARGET: Final = _TransferTarget()


def _transfer_options(command: Command) -> Command:
    """Add the options of a move or copy."""
    for option in (
        click.option("--reason", help="Reason, for the history."),
        click.option("--accept", is_flag=True, help="Override a pinned file of an agent."),
        click.option("--new", is_flag=True, help="Refuse to replace a file at TO."),
        click.option(
            "--if-match",
            callback=quote_etag,
            metavar="ETAG",
            help="Only if the current ETag of the file matches.",
        ),
    ):
        command = option(command)
    return command


def _transfer(
    kind: str, source: Target, to: str, options: dict[str, Any], *, as_json: bool
) -> None:
    """Move or copy, and print what every file became."""
    location = "/".join(filter(None, (source.owner.kind, source.owner.name)))
    if to.startswith(f"{location}/"):
        raise click.UsageError(f"TO is a path there: leave out {location}/")
    facts = {name: options.pop(name) for name in ("if_match", "new", "accept", "reason")}
    path = to + source.path.rpartition("/")[2] if to.endswith("/") else to

    async def run(client: AsyncClient) -> CommitResult:
        files = files_of(client, source.owner)
        operation = files.move if kind == "move" else files.copy
        return await operation(
            source.path,
            path,
            if_match=facts["if_match"],
            if_none_match="*" if facts["new"] else None,
            accept_template_update=facts["accept"],
            reason=facts["reason"],
        )

    result = run_commit(run, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
        return
    for change in result.changes:
        if change.moved_from is not None:
            line = f"{change.moved_from} -> {change.path}"
            click.echo(f"{formatting.printable(line)}: version {change.version or 'unchanged'}")


@click.command()
@click.argument("source", type=FILE, metavar="WHERE/PATH")
@click.argument("to", type=_TRANSFER_TARGET, metavar="TO")
@server_options
@_transfer_options
def mv(source: Target, to: str, as_json: bool, **options: Any) -> None:
    """Move a file, or a directory with everything in it.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. TO is the new path there; with a
    slash at its end, the directory to move into. A file keeps its id and its history: carrel log
    goes on with the versions before the move. A file at TO is replaced, unless --new is given. All
    is moved, or nothing.
    """
    _transfer("move", source, to, options, as_json=as_json)


@click.command()
@click.argument("source", type=FILE, metavar="WHERE/PATH")
@click.argument("to", type=_TRANSFER_TARGET, metavar="TO")
@server_options
@_transfer_options
def cp(source: Target, to: str, as_json: bool, **options: Any) -> None:
    """Copy a file, or a directory with everything in it.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. TO is the path of the copy there;
    with a slash at its end, the directory to copy into. carrel log shows where a copy came from. A
    file at TO is replaced, unless --new is given. All is copied, or nothing.
    """
    _transfer("copy", source, to, options, as_json=as_json)


@click.command()
@click.argument("directory", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--reason", help="Reason, for the history.")
def mkdir(directory: Target, as_json: bool, reason: str | None, **options: Any) -> None:
    """Create a directory, which stays when it is empty.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. Directories above it need not
    exist, and one that exists already is kept. A directory for files needs no mkdir: it exists
    while a file is in it.
    """

    async def make(client: AsyncClient) -> CommitResult:
        return await files_of(client, directory.owner).make_directory(directory.path, reason=reason)

    result = run_commit(make, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
    else:
        click.echo(f"{directory}/: " + ("created" if _has_written(result) else "exists already"))


def _has_written(result: CommitResult) -> bool:
    return any(change.version is not None for change in result.changes)


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option(
    "--if-match",
    callback=quote_etag,
    metavar="ETAG",
    help="Delete only if the current ETag matches.",
)
@click.option("--recursive", "-r", is_flag=True, help="Delete a directory and all files in it.")
@click.option("--reason", help="Reason, for the history.")
def rm(
    file: Target,
    as_json: bool,
    if_match: str | None,
    recursive: bool,
    reason: str | None,
    **options: Any,
) -> None:
    """Delete a file, or an agent's override of one.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. After an override is removed, the
    inherited file shows again. Earlier versions stay: carrel log lists them, and carrel put
    --from-version restores one. With -r all files of a directory are deleted, or none.
    """
    if recursive:
        if if_match is not None:
            raise click.UsageError("--recursive cannot be combined with --if-match")
        _remove_directory(file, reason, options, as_json=as_json)
        return

    async def remove(client: AsyncClient) -> str | None:
        from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

        files = files_of(client, file.owner)
        await files.delete(file.path, if_match=if_match, reason=reason)
        try:
            return (await files.explain(file.path)).source
        except CarrelError:  # The file is deleted even if the new state cannot be loaded.
            return None

    source = run_on_server(remove, options, as_json=as_json)
    if as_json:
        print_json({"ok": True, "path": file.path, "source": source})
    else:
        click.echo(f"{file}: removed" + (f"; inherited from {source}" if source else ""))


def _remove_directory(
    directory: Target, reason: str | None, options: dict[str, Any], *, as_json: bool
) -> None:
    async def remove(client: AsyncClient) -> CommitResult:
        files = files_of(client, directory.owner)
        return await files.remove_directory(directory.path, recursive=True, reason=reason)

    result = run_commit(remove, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
        return
    for change in result.changes:
        click.echo(formatting.printable(f"{directory.owner}/{change.path}: removed"))


@click.command()
@click.argument("owner", type=OWNER, metavar="WHERE")
@click.argument(
    "source", type=PathArgument(allow_dash=True, path_type=str), metavar="[FILE|-]", default="-"
)
@server_options
@click.option("--reason", help="Reason, for the history; instead of that in FILE.")
def commit(
    owner: TargetOwner, source: str, as_json: bool, reason: str | None, **options: Any
) -> None:
    """Apply up to 1,000 changes together, or none.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. FILE or standard input is JSON as
    POST …/commits takes it: {"writes": [{"op": "put", "path": …, "content": …}, …]}, with op put,
    delete, move or copy. Exit code 1: refused, with every change that failed, and nothing was
    written.
    """
    changes, reason_in_file = _read_commit(source, as_json=as_json)

    async def apply(client: AsyncClient) -> CommitResult:
        return await files_of(client, owner).commit(changes, reason=reason or reason_in_file)

    result = run_commit(apply, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
    else:
        print_changes(result)


def _read_commit(source: str, *, as_json: bool) -> tuple[list[FileChange], str | None]:
    try:
        text = sys.stdin.buffer.read() if source == "-" else Local(source).read_bytes()
        return parse_commit(text)
    except OSError as problem:
        fail(f"{source}: {problem.strerror}", as_json=as_json)
    except CommitFileError as problem:
        fail(f"{source}: {problem}", as_json=as_json)
