"""Report of what a run was made of and what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from carrel.cli import formatting

if TYPE_CHECKING:
    from carrel_client import Author, Provenance, ProvenanceFile, TimeLineItem

_MAX_PREVIEW_CHARS = 60


def print_provenance(chain: Provenance) -> None:
    """Print the run, its entries, and a row for each file that it read."""
    if chain.run is None:
        click.echo("no run wrote this entry")
        return
    by = chain.run["startedBy"]
    click.echo(f"run {chain.run['runId']} of {chain.run['agentId']}")
    started = formatting.format_time(chain.run["startedAt"])
    click.echo(f"started {started} by {formatting.printable(by['name'] or by['id'])}")
    for entry in chain.entries:
        text = formatting.printable(" ".join(entry.preview.split()))
        session = formatting.printable(entry.session_id)
        click.echo(f"  {session} #{entry.number} {entry.role}: {text[:_MAX_PREVIEW_CHARS]}")
    headers = ("path", "version", "source", "prompt", "written by", "review")
    formatting.print_table(headers, list(map(_row, chain.files)), right_aligned=("version",))


def _row(file: ProvenanceFile) -> tuple[str, ...]:
    review = f"{file.review.kind} by {_name(file.review.by)}" if file.review else ""
    content = file.origin or file.written
    author = _name(content.author) if content else ""
    in_prompt = "yes" if file.in_prompt else ""
    return (file.path, str(file.version), file.source, in_prompt, author, review)


def _name(author: Author) -> str:
    return author.name or author.id


def time_line_row(item: TimeLineItem) -> list[formatting.Cell]:
    """Row of one event or entry."""
    at = formatting.format_time(item.at)
    if item.entry is not None:
        name = f"{item.entry.session_id} #{item.entry.number} {item.entry.role}"
        return [at, name, item.entry.preview]
    event = item.event or {}
    payload = event.get("payload", {})
    details = (payload.get("path") or payload.get("tool"), payload.get("version"))
    text = " v".join(str(detail) for detail in details if detail)
    if payload.get("isError"):
        text += " (error)"
    return [at, str(event.get("type", "")), text]
