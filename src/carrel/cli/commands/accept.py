"""``carrel accept``: what was reviewed becomes what an agent is held to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import looked_at, pin_told, show_offer
from carrel.cli.connection import run_on_server
from carrel.cli.console import FAILED, fail, print_json, server_options

if TYPE_CHECKING:
    from carrel.cli.commands.bulk_review import TemplateFollowers
    from carrel_client import Pin

_UNASKED = "nobody can be asked here: --sha256 says what was reviewed, --yes takes the latest"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="[AGENT] PATH")
@server_options
@click.option("--template", help="For every agent that follows this one; AGENT is left out.")
@click.option("--sha256", metavar="DIGEST", help="Of what was reviewed; nothing is asked.")
@click.option("--yes", is_flag=True, help="Accept the latest without being asked.")
def accept(
    names: Sequence[str], as_json: bool, sha256: str | None, yes: bool, **given: Any
) -> None:
    """Accept what is offered for a pinned file.

    It comes from the agent's template, or from the defaults. AGENT is an id or a slug. On a
    terminal the difference is shown, and you are asked. What was shown is what is accepted: if it
    has changed meanwhile, it is refused. Exit code 0: it was accepted, or nothing newer was
    offered; 1: it was refused, or you said no; with --template also if it was refused for one
    agent, which stops no other.
    """
    template = given.pop("template")
    if len(names) != (1 if template else 2):
        raise click.UsageError("it takes an AGENT and a PATH, or --template and a PATH")
    digest = None if sha256 is None else _digest(sha256)
    if not (digest or yes) and (as_json or not formatting.can_ask()):
        raise click.UsageError(_UNASKED)
    review = _PathReview(names[-1], digest, yes, as_json, given)
    review.of_all(template) if template else review.of_one(names[0])


def _digest(text: str) -> str:
    from carrel.core.errors import ValidationError  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.identifiers import parse_digest  # noqa: PLC0415 - as above

    try:
        return parse_digest(text).removeprefix("sha256:")
    except ValidationError as problem:
        raise click.UsageError(str(problem)) from None


class _PathReview:
    """One path under review: shown, asked about, accepted."""

    def __init__(
        self, path: str, digest: str | None, yes: bool, as_json: bool, given: Mapping[str, Any]
    ) -> None:
        self._path, self._digest, self._yes = path, digest, yes
        self._as_json, self._given = as_json, given

    def of_one(self, agent: str) -> None:
        digest = self._digest
        if digest is None:
            [pin] = run_on_server(
                lambda desk: looked_at(desk, agent, self._path), self._given, as_json=self._as_json
            )
            if not pin.update_available or pin.latest_sha256 is None:
                self._say_one(agent, pin, "nothing newer is offered")
                return
            if not self._yes:
                self._insist_on_texts([pin])
                show_offer(pin)
                self._confirm(f"Accept this for {agent}?")
            digest = pin.latest_sha256
        done = run_on_server(
            lambda desk: desk.agent(agent).accept(self._path, digest),
            self._given,
            as_json=self._as_json,
        )
        self._say_one(agent, done, "accepted")

    def of_all(self, template: str) -> None:
        from carrel.cli.commands.bulk_review import accept_for_all, followers_of  # noqa: PLC0415 - so that --help stays quick

        digest = self._digest
        if digest is None:
            found = run_on_server(
                lambda desk: followers_of(desk, template, self._path),
                self._given,
                as_json=self._as_json,
            )
            digest = self._latest(found)
            if digest is None:
                self._say_all([])
                return
            if not self._yes:
                self._insist_on_texts(found.pins.values())
                found.show()
                self._confirm(f"Accept this for {found.waiting} agents?")
        path, reviewed = self._path, digest
        rows = run_on_server(
            lambda desk: accept_for_all(desk, template, path, reviewed),
            self._given,
            as_json=self._as_json,
        )
        self._say_all(rows)

    def _latest(self, found: TemplateFollowers) -> str | None:
        """The one digest that is offered to all. Where there are several, that is the end."""
        if len(found.offered) > 1:
            fail("it was changed while it was looked at: look again", as_json=self._as_json)
        return next(iter(found.offered), None)

    def _insist_on_texts(self, pins: Iterable[Pin]) -> None:
        """Nobody is asked about what cannot be shown."""
        for pin in pins:
            if pin.error:
                fail(formatting.plain(f"{pin.path}: {pin.error}"), as_json=self._as_json)

    def _confirm(self, question: str) -> None:
        if not click.confirm(question, err=True):
            click.echo("Nothing was accepted.", err=True)
            sys.exit(FAILED)

    def _say_one(self, agent: str, pin: Pin, result: str) -> None:
        if self._as_json:
            print_json({"ok": True, "result": result, **pin_told(pin)})
        else:
            click.echo(f"{agent}: {self._path}: {result}")

    def _say_all(self, rows: Sequence[Mapping[str, Any]]) -> None:
        failed = [row for row in rows if not row["success"]]
        if self._as_json:
            counts = {"accepted": len(rows) - len(failed), "failed": len(failed)}
            print_json({"ok": not failed, **counts, "results": list(rows)})
        elif not rows:
            click.echo(f"{self._path}: nothing newer is offered to any agent")
        else:
            for row in rows:
                click.echo(formatting.plain(f"{row['agent']}: {_result(row)}"))
        if failed:
            sys.exit(FAILED)


def _result(row: Mapping[str, Any]) -> str:
    if not row["success"]:
        return f"refused: {row['error']}"
    return "accepted" if row["changed"] else "had it already"
