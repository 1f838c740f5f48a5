"""`carrel skills`: lists the skills of an agent or another owner of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.connection import files_of, run_on_server
from carrel.cli.console import print_json, server_options
from carrel.cli.targets import OWNER, TargetOwner

if TYPE_CHECKING:
    from carrel_client import Skill


@click.command()
@click.argument("owner", type=OWNER, metavar="WHERE")
@server_options
def skills(owner: TargetOwner, as_json: bool, **options: Any) -> None:
    """List the skills of an agent, with the problems of invalid ones.

    WHERE is an agent, templates/NAME, defaults or workspaces/ID. Updates of pinned skills are
    accepted file by file, with carrel accept.
    """
    found = run_on_server(lambda client: files_of(client, owner).skills(), options, as_json=as_json)
    if as_json:
        print_json({"owner": str(owner), "skills": [_skill_to_json(skill) for skill in found]})
        return
    headers = ("skill", "state", "files", "digest", "description")
    formatting.print_table(headers, [_row(skill) for skill in found], right_aligned=("files",))
    for skill in found:
        for problem in skill.problems:
            click.echo(formatting.printable(f"{skill.name}: {problem}"), err=True)


def _row(skill: Skill) -> list[formatting.Cell]:
    digest = formatting.short_digest(skill.digest.removeprefix("sha256:"))
    return [skill.name, _state(skill), str(len(skill.files)), digest, skill.description]


def _state(skill: Skill) -> formatting.Cell:
    if not skill.valid:
        return ("invalid", "red")
    if any(file.update_available for file in skill.files):
        return ("update available", "yellow")
    return ("valid", "green")


def _skill_to_json(skill: Skill) -> dict[str, Any]:
    """Return a skill as the API encodes it."""
    return dict(skill.facts)
