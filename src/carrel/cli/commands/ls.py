"""`carrel ls` and `carrel skills`: list files, and the skills among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import format_size, print_json, server_options
from carrel.cli.names import OWNER, TARGET
from carrel.cli.targets import Target, TargetOwner

if TYPE_CHECKING:
    from carrel_client import AsyncClient, DirectoryEntry, FileRow, Skill

_STYLES: Final = {"pinned": "yellow", "managed": "magenta"}


@click.command()
@click.argument("target", type=TARGET, metavar="WHERE[/PATH]")
@server_options
@click.option("--long", "-l", is_flag=True, help="Show source, class, version and update time.")
@click.option(
    "--directory", "-d", is_flag=True, help="Only what is directly in the directory, with sizes."
)
def ls(target: Target, as_json: bool, long: bool, directory: bool, **options: Any) -> None:
    """List files.

    WHERE is an agent by its id or slug (finn, or agents/finn), templates/NAME, defaults or
    workspaces/ID. For an agent, inherited files are included. With a PATH, only that file or that
    directory is listed. With -d, files below its directories are counted, not listed.
    """
    if directory:
        _list_directory(target, options, as_json=as_json)
        return

    async def load_rows(client: AsyncClient) -> tuple[FileRow, ...]:
        from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

        rows = await files_of(client, target.owner).list(target.path)
        within = f"{target.path}/"
        matches = tuple(r for r in rows if not target.path or f"{r.path}/".startswith(within))
        if target.path and not matches:
            raise NotFound(f"no such file or directory: {target}")
        return matches

    files = run_on_server(load_rows, options, as_json=as_json)
    if as_json:
        print_json({"files": [formatting.file_to_json(row) for row in files]})
    elif long:
        _print_files(files)
    else:
        for row in files:
            click.secho(formatting.printable(row.path), fg=_STYLES.get(row.file_class))


def _list_directory(target: Target, options: dict[str, Any], *, as_json: bool) -> None:
    entries = run_on_server(lambda client: _load_entries(client, target), options, as_json=as_json)
    if as_json:
        print_json({"files": [formatting.entry_to_json(entry) for entry in entries]})
        return
    rows: list[list[formatting.Cell]] = [
        [
            (f"{entry.path}/", "blue") if entry.is_directory else entry.path,
            format_size(entry.size),
            str(entry.version or ""),
            formatting.format_time(entry.updated_at),
        ]
        for entry in entries
    ]
    headers = ("path", "size", "version", "updated")
    formatting.print_table(headers, rows, right_aligned=("size", "version"))


async def _load_entries(client: AsyncClient, target: Target) -> tuple[DirectoryEntry, ...]:
    """What is directly in a directory, or the one file. Raises NotFound."""
    from carrel_client import NotFound  # noqa: PLC0415 - so that --help stays quick

    files = files_of(client, target.owner)
    entries = await files.list_directory(target.path)
    if entries or not target.path:
        return entries
    beside = await files.list_directory(target.path.rpartition("/")[0])
    matches = [entry for entry in beside if entry.path == target.path]
    if not matches:
        raise NotFound(f"no such file or directory: {target}")
    return tuple(entry for entry in matches if not entry.is_directory)


def _print_files(files: tuple[FileRow, ...]) -> None:
    headers = ("path", "version", "source", "class", "updated", "")
    rows = [
        (
            (row.path, _STYLES.get(row.file_class, "")),
            str(row.version),
            row.source,
            row.file_class,
            formatting.format_time(row.updated_at),
            _remark_cell(row),
        )
        for row in files
    ]
    formatting.print_table(headers, rows, right_aligned=("version",))


def _remark_cell(row: FileRow) -> formatting.Cell:
    if row.error:
        return (row.error, "red")
    return ("update available", "yellow") if row.update_available else ""


@click.command()
@click.argument("owner", type=OWNER, metavar="WHERE")
@server_options
def skills(owner: TargetOwner, as_json: bool, **options: Any) -> None:
    """List skills, with the problems of invalid ones.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. Updates of pinned skills are
    accepted file by file, with carrel accept.
    """
    listed = run_on_server(
        lambda client: files_of(client, owner).skills(), options, as_json=as_json
    )
    if as_json:
        print_json({"owner": str(owner), "skills": [dict(skill.facts) for skill in listed]})
        return
    headers = ("skill", "state", "files", "digest", "description")
    formatting.print_table(
        headers, [_skill_row(skill) for skill in listed], right_aligned=("files",)
    )
    for skill in listed:
        for problem in skill.problems:
            click.echo(formatting.printable(f"{skill.name}: {problem}"), err=True)


def _skill_row(skill: Skill) -> list[formatting.Cell]:
    digest = formatting.short_digest(skill.digest.removeprefix("sha256:"))
    return [skill.name, _skill_state(skill), str(len(skill.files)), digest, skill.description]


def _skill_state(skill: Skill) -> formatting.Cell:
    if not skill.valid:
        return ("invalid", "red")
    if any(file.update_available for file in skill.files):
        return ("update available", "yellow")
    return ("valid", "green")
