"""``carrel edit``: a file in your editor, saved only over what you were looking at."""

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
from carrel.cli.commands.put import OVERRIDE, say_written
from carrel.cli.connection import LONGEST_PREFIX, files_at, run_on_server
from carrel.cli.console import FAILED, fail, print_json, server_options
from carrel.cli.targets import FILE, Target

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CarrelError, File


@click.command()
@click.argument("file", type=FILE, metavar="WHERE/PATH")
@server_options
@click.option("--accept", is_flag=True, help="Override a pinned file of an agent.")
@click.option("--reason", help="Why, for the history.")
def edit(file: Target, as_json: bool, accept: bool, reason: str | None, **given: Any) -> None:
    """Edit a file with your editor (VISUAL, or EDITOR).

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. You edit the text with its
    placeholders as they stand; a file that is not there yet begins empty. It is saved only if
    nobody has changed it meanwhile. If they have, or if it is refused, your text is kept in a file
    that is named. If nothing was changed, nothing is written. Exit code 0: it was written, or you
    changed nothing; 1: it was not written.
    """
    seen = run_on_server(lambda desk: _read(desk, file), given, as_json=as_json)
    if seen and seen.file_class == "pinned" and file.place.kind == "agents" and not accept:
        fail(f"{file.path} is pinned: {OVERRIDE}", as_json=as_json)
    draft = _draft(file.path, seen.content if seen else "")
    text = _edited(draft, as_json=as_json)
    if text == (seen.content.encode() if seen else b""):
        _drop(draft)
        print_json({"ok": True, "changed": False}) if as_json else click.echo(
            "Nothing was changed."
        )
        return
    how = {"accept_template_update": accept, "reason": reason}
    done = run_on_server(lambda desk: _write(desk, file, seen, text, how), given, as_json=as_json)
    if isinstance(done, _UnsavedEdit):
        _say_kept(done, draft, as_json=as_json)
        sys.exit(FAILED)
    _drop(draft)
    say_written(file, done, text, as_json=as_json)


class _UnsavedEdit:
    """It was not written: why, what was seen, what is there now, and what was to be written."""

    def __init__(self, problem: CarrelError, seen: str, now: str | None, text: bytes) -> None:
        self.problem, self.seen, self.now, self.text = problem, seen, now, text


async def _read(desk: AsyncClient, file: Target) -> File | None:
    from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

    files = files_at(desk, file.place)
    try:
        return await files.get(file.path, raw=True)
    except NotFound:
        await files.list(file.path[:LONGEST_PREFIX])  # Raises NotFound.
        return None


async def _write(
    desk: AsyncClient, file: Target, seen: File | None, text: bytes, how: Mapping[str, Any]
) -> File | _UnsavedEdit:
    from carrel_client import CarrelError, WorkspaceConflict  # noqa: PLC0415 - so that --help stays quick

    files = files_at(desk, file.place)
    match, absent = (seen.etag, None) if seen else (None, "*")
    try:
        return await files.put(file.path, text, if_match=match, if_none_match=absent, **how)
    except CarrelError as problem:
        now: str | None = None
        if isinstance(problem, WorkspaceConflict):
            try:
                now = (await files.get(file.path, raw=True)).content
            except CarrelError:  # It may be gone by now; what is kept is worth telling anyway.
                now = ""
        return _UnsavedEdit(problem, seen.content if seen else "", now, text)


def _draft(path: str, content: str) -> Local:
    """A file of the same name, for nobody else to read, so that an editor knows its kind."""
    room = Local(tempfile.mkdtemp(prefix="carrel-edit-"))
    draft = room / os.path.basename(path)
    draft.write_bytes(content.encode())
    return draft


def _edited(draft: Local, *, as_json: bool) -> bytes:
    """What an editor made of it; if it failed, what it changed is kept, and that is the end."""
    was = draft.read_bytes()
    try:
        click.edit(filename=str(draft))
        return draft.read_bytes()
    except (click.ClickException, OSError) as problem:
        told = problem.message if isinstance(problem, click.ClickException) else str(problem)
        told = told.rstrip(".") + "."
        if draft.is_file() and draft.read_bytes() != was:
            fail(f"{told} Your text is kept in {draft}", as_json=as_json)
        _drop(draft)
        fail(f"{told} Nothing was written.", as_json=as_json)


def _drop(draft: Local) -> None:
    shutil.rmtree(draft.parent, ignore_errors=True)


def _say_kept(kept: _UnsavedEdit, draft: Local, *, as_json: bool) -> None:
    if as_json:
        facts = {"ok": False, "problem": str(kept.problem), "kept": str(draft)}
        print_json(facts | ({} if kept.now is None else {"current": kept.now}))
        return
    if kept.now is not None:
        click.echo("What has changed there since you read it:", err=True)
        formatting.diff(_diff(kept.seen.encode(), kept.now.encode(), draft.name))
        click.echo("What you changed:", err=True)
        formatting.diff(_diff(kept.seen.encode(), kept.text, draft.name))
    click.ClickException(str(kept.problem)).show()
    click.echo(f"Nothing was written. Your text is kept in {draft}", err=True)


def _diff(before: bytes, after: bytes, name: str) -> str:
    from carrel.core.files.diff import unified_diff  # noqa: PLC0415 - so that --help stays quick

    return unified_diff(before, after, name)
