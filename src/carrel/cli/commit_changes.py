"""Changes of a commit: read from JSON, sent together, and what each became."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, print_json

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CarrelError, ChangedFile, CommitResult
    from carrel_client.file_changes import FileChange

_ARGUMENTS: Final = {
    "path": "path",
    "to": "to",
    "content": "content",
    "contentType": "content_type",
    "ifMatch": "if_match",
    "ifNoneMatch": "if_none_match",
    "acceptTemplateUpdate": "accept_template_update",
    "recursive": "recursive",
}
"""Arguments of a change by their names in JSON."""


class CommitFileError(ValueError):
    """The text describes no commit. The message says why."""


def parse_commit(text: bytes) -> tuple[list[FileChange], str | None]:
    """Parse the body of POST …/commits: its changes and its reason. Raises CommitFileError."""
    import json  # noqa: PLC0415 - so that --help stays quick

    try:
        body = json.loads(text)
    except ValueError as problem:
        raise CommitFileError(f"not JSON: {problem}") from None
    if not isinstance(body, dict) or not isinstance(body.get("writes"), list):
        raise CommitFileError("expected an object with `writes`, a list of changes")
    if unknown := sorted(body.keys() - {"writes", "reason"}):
        raise CommitFileError(f"unknown field: {unknown[0]}")
    return [_parse_change(n, write) for n, write in enumerate(body["writes"])], body.get("reason")


def _parse_change(index: int, write: Any) -> FileChange:
    try:
        return _build_change(dict(write) if isinstance(write, dict) else {})
    except ValueError as problem:
        raise CommitFileError(f"writes[{index}]: {problem}") from None


def _build_change(fields: dict[str, Any]) -> FileChange:
    """Raises ValueError."""
    from base64 import b64decode  # noqa: PLC0415 - so that --help stays quick

    from carrel_client import CopyFile, DeleteFile, MoveFile, PutFile  # noqa: PLC0415 - as above

    types = {"put": PutFile, "delete": DeleteFile, "move": MoveFile, "copy": CopyFile}
    operation = fields.pop("op", None)
    if operation not in types:
        raise ValueError(f"op must be one of {', '.join(types)}")
    encoding = fields.pop("encoding", "utf-8")
    arguments = {_ARGUMENTS.get(name, name): value for name, value in fields.items()}
    if encoding == "base64":
        arguments["content"] = b64decode(str(arguments.get("content")), validate=True)
    elif encoding != "utf-8":
        raise ValueError("encoding must be one of utf-8, base64")
    expected = {field.name: field for field in dataclasses.fields(types[operation])}
    for name in fields:
        if _ARGUMENTS.get(name) not in expected:
            raise ValueError(f"{operation} has no {name}")
    for name, field in expected.items():
        if field.default is dataclasses.MISSING and name not in arguments:
            raise ValueError(f"{operation} needs {name}")
    change: FileChange = types[operation](**arguments)
    return change


def run_commit(
    work: Callable[[AsyncClient], Coroutine[Any, Any, CommitResult]],
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> CommitResult:
    """Run `work` and return its result; if it is refused, print every change that failed."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def call(client: AsyncClient) -> CommitResult | CarrelError:
        try:
            return await work(client)
        except CarrelError as problem:
            if len(problem.failed_changes) > 1:
                return problem
            raise

    result = run_on_server(call, options, as_json=as_json)
    if isinstance(result, CarrelError):
        _print_failures(result, as_json=as_json)
        sys.exit(EXIT_FAILED)
    return result


def _print_failures(problem: CarrelError, *, as_json: bool) -> None:
    if as_json:
        failed = [dict(change) for change in problem.failed_changes]
        print_json({"ok": False, "problem": problem.message, "failed": failed})
        return
    for change in problem.failed_changes:
        click.echo(formatting.printable(f"Error: {change['message']}"), err=True)


def commit_to_json(result: CommitResult) -> dict[str, Any]:
    changes = [_change_to_json(change) for change in result.changes]
    return {"ok": True, "revision": result.revision, "changes": changes}


def _change_to_json(change: ChangedFile) -> dict[str, Any]:
    names = {"moved_from": "from", "file_id": "fileId"}
    facts = dataclasses.asdict(change)
    return {names.get(name, name): fact for name, fact in facts.items()}


def print_changes(result: CommitResult) -> None:
    """Print one line for every path that changed."""
    for change in result.changes:
        path = change.path if change.moved_from is None else f"{change.moved_from} -> {change.path}"
        became = f"version {change.version or 'unchanged'}"
        if change.change in {"delete", "rmdir"}:
            became = "removed"
        elif change.change == "mkdir":
            became = "created"
        click.echo(f"{formatting.printable(path)}: {became}")
