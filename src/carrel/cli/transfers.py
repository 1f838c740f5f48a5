"""Moves and copies of files: what `carrel mv` and `carrel cp` have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from carrel.cli import formatting
from carrel.cli.commands.put import quote_etag
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json
from carrel.cli.targets import Target, TargetError, parse_path

if TYPE_CHECKING:
    from carrel_client import AsyncClient, ChangedFile, CommitResult

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


TARGET_OF_TRANSFER: Final = _TransferTarget()


def transfer_options(command: Command) -> Command:
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


def transfer(kind: str, source: Target, to: str, options: dict[str, Any], *, as_json: bool) -> None:
    """Move or copy, and print what every file became."""
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

    result = run_on_server(run, options, as_json=as_json)
    if as_json:
        print_json(commit_to_json(result))
        return
    for change in result.changes:
        if change.moved_from is not None:
            line = f"{change.moved_from} -> {change.path}"
            click.echo(f"{formatting.printable(line)}: version {change.version or 'unchanged'}")


def commit_to_json(result: CommitResult) -> dict[str, Any]:
    changes = [_change_to_json(change) for change in result.changes]
    return {"ok": True, "revision": result.revision, "changes": changes}


def _change_to_json(change: ChangedFile) -> dict[str, Any]:
    names = {"moved_from": "from", "file_id": "fileId"}
    facts = dataclasses.asdict(change)
    return {names.get(name, name): fact for name, fact in facts.items()}
