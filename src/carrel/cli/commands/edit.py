"""`carrel edit`: edits a file in an editor, with an ETag check on saving."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path as Local
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.commands.put import PINNED_HINT, print_written
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import EXIT_FAILED, fail, print_json, server_options
from carrel.cli.names import FILE
from carrel.cli.targets import Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CarrelError, File


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--accept", is_flag=True, help="Override a pinned file of an agent.")
@click.option("--reason", help="Reason, for the history.")
def edit(file: Target, as_json: bool, accept: bool, reason: str | None, **options: Any) -> None:
    """Edit a file in your editor (VISUAL, or EDITOR).

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. You edit the unrendered text; a
    new file starts empty. The file is saved only if it has not changed meanwhile. If it has, or if
    the server refuses it, your text is kept in a local file, whose name is printed. If you change
    nothing, nothing is written. Exit code 0: written, or unchanged; 1: not written.
    """
    original = run_on_server(lambda client: _read(client, file), options, as_json=as_json)
    if original and original.file_class == "pinned" and file.owner.kind == "agents" and not accept:
        fail(f"{file.path} is pinned: {PINNED_HINT}", as_json=as_json)
    if original and original.encoding is not None:
        fail(f"{file.path} is not text ({original.content_type})", as_json=as_json)
    draft = _create_draft(file.path, original.content if original else "")
    text = _run_editor(draft, as_json=as_json)
    if text == (original.content.encode() if original else b""):
        _delete_draft(draft)
        print_json({"ok": True, "changed": False}) if as_json else click.echo("Nothing changed.")
        return
    arguments = {"accept_template_update": accept, "reason": reason}
    result = run_on_server(
        lambda client: _write(client, file, original, text, arguments), options, as_json=as_json
    )
    if isinstance(result, _UnsavedEdit):
        _print_unsaved(result, draft, as_json=as_json)
        sys.exit(EXIT_FAILED)
    _delete_draft(draft)
    print_written(file, result, redacted=result.data != text, as_json=as_json)


class _UnsavedEdit:
    """A refused write: the error, the original, the current and the edited text."""

    def __init__(
        self, problem: CarrelError, original: str, current: str | None, text: bytes
    ) -> None:
        self.problem, self.original, self.current, self.text = problem, original, current, text


async def _read(client: AsyncClient, file: Target) -> File | None:
    from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

    files = files_of(client, file.owner)
    try:
        return await files.get(file.path, raw=True)
    except NotFound:
        await files.list(file.path)  # Raises NotFound.
        return None


async def _write(
    client: AsyncClient,
    file: Target,
    original: File | None,
    text: bytes,
    arguments: Mapping[str, Any],
) -> File | _UnsavedEdit:
    from carrel_client import CarrelError, WorkspaceConflict  # noqa: PLC0415 - so that --help stays quick

    files = files_of(client, file.owner)
    match, absent = (original.etag, None) if original else (None, "*")
    try:
        return await files.put(file.path, text, if_match=match, if_none_match=absent, **arguments)
    except CarrelError as problem:
        current: str | None = None
        if isinstance(problem, WorkspaceConflict):
            try:
                current = (await files.get(file.path, raw=True)).content
            except CarrelError:  # The file may be deleted by now; still report the kept text.
                current = ""
        return _UnsavedEdit(problem, original.content if original else "", current, text)


def _create_draft(path: str, content: str) -> Local:
    """Write the text to a private file of the same name.

    The name lets editors detect the file type.
    """
    directory = Local(tempfile.mkdtemp(prefix="carrel-edit-"))
    draft = directory / os.path.basename(path)
    draft.write_bytes(content.encode())
    return draft


def _run_editor(draft: Local, *, as_json: bool) -> bytes:
    """Run the editor and return the edited text.

    Exits if the editor fails; changed text is kept.
    """
    before = draft.read_bytes()
    try:
        click.edit(filename=str(draft))
        return draft.read_bytes()
    except (click.ClickException, OSError) as problem:
        message = problem.message if isinstance(problem, click.ClickException) else str(problem)
        message = message.rstrip(".") + "."
        if draft.is_file() and draft.read_bytes() != before:
            fail(f"{message} Your text is kept in {draft}", as_json=as_json)
        _delete_draft(draft)
        fail(f"{message} Nothing was written.", as_json=as_json)


def _delete_draft(draft: Local) -> None:
    shutil.rmtree(draft.parent, ignore_errors=True)


def _print_unsaved(unsaved: _UnsavedEdit, draft: Local, *, as_json: bool) -> None:
    if as_json:
        facts = {"ok": False, "problem": str(unsaved.problem), "kept": str(draft)}
        print_json(facts | ({} if unsaved.current is None else {"current": unsaved.current}))
        return
    if unsaved.current is not None:
        click.echo("Changes on the server since you read the file:", err=True)
        formatting.print_diff(
            _diff(unsaved.original.encode(), unsaved.current.encode(), draft.name)
        )
        click.echo("Your changes:", err=True)
        formatting.print_diff(_diff(unsaved.original.encode(), unsaved.text, draft.name))
    click.ClickException(str(unsaved.problem)).show()
    click.echo(f"Nothing was written. Your text is kept in {draft}", err=True)


def _diff(before: bytes, after: bytes, name: str) -> str:
    from carrel.core.files.diff import unified_diff  # noqa: PLC0415 - so that --help stays quick

    return unified_diff(before, after, name)
