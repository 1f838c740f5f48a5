"""`carrel accept`: accepts the offered version of a pinned file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import load_pins, pin_to_json, print_offer
from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, fail, print_json, server_options

if TYPE_CHECKING:
    from carrel.cli.commands.bulk_review import TemplateFollowers
    from carrel_client import Pin

_NOT_INTERACTIVE = (
    "no terminal to ask on: pass --sha256 of the reviewed version, or --yes for the latest"
)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="[AGENT] PATH")
@server_options
@click.option("--template", help="Accept for every agent of this template; omit AGENT.")
@click.option("--defaults", is_flag=True, help="Accept for all that inherit it; omit AGENT.")
@click.option("--sha256", metavar="DIGEST", help="Digest of the reviewed version; do not ask.")
@click.option("--yes", is_flag=True, help="Accept the latest version; do not ask.")
def accept(
    names: Sequence[str], as_json: bool, sha256: str | None, yes: bool, **options: Any
) -> None:
    """Accept the offered version of a pinned file.

    The version comes from the agent's template or from the defaults. AGENT is an id or a slug. On a
    terminal the command shows the diff and asks. It accepts exactly the version that was shown; if
    that has changed meanwhile, it fails. Exit code 0: accepted, or no update available; 1: refused
    or declined; with --template or --defaults also if one agent failed, which stops no other.
    """
    template, defaults = options.pop("template"), options.pop("defaults")
    if template and defaults:
        raise click.UsageError("expected --template or --defaults, not both")
    for_all = bool(template or defaults)
    if len(names) != (1 if for_all else 2):
        raise click.UsageError("expected AGENT and PATH, or --template or --defaults and PATH")
    digest = None if sha256 is None else parse_digest_option(sha256)
    if not (digest or yes) and (as_json or not formatting.is_interactive()):
        raise click.UsageError(_NOT_INTERACTIVE)
    review = _PathReview(names[-1], digest, yes, as_json, options)
    review.accept_for_followers(template) if for_all else review.accept_for_agent(names[0])


def parse_digest_option(text: str) -> str:
    """Return the hex digits of a digest. Raises UsageError."""
    from carrel.core.errors import ValidationError  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.identifiers import parse_digest  # noqa: PLC0415 - as above

    try:
        return parse_digest(text).removeprefix("sha256:")
    except ValidationError as problem:
        raise click.UsageError(str(problem)) from None


class _PathReview:
    """Review of one path: show, ask, accept."""

    def __init__(
        self, path: str, digest: str | None, yes: bool, as_json: bool, options: Mapping[str, Any]
    ) -> None:
        self._path, self._digest, self._yes = path, digest, yes
        self._as_json, self._options = as_json, options

    def accept_for_agent(self, agent: str) -> None:
        digest = self._digest
        if digest is None:
            [pin] = run_on_server(
                lambda client: load_pins(client, agent, self._path),
                self._options,
                as_json=self._as_json,
            )
            if not pin.update_available or pin.latest_sha256 is None:
                self._print_one(agent, pin, "nothing newer is offered")
                return
            if not self._yes:
                self._require_contents([pin])
                print_offer(pin)
                self._confirm(f"Accept this for {agent}?")
            digest = pin.latest_sha256
        accepted = run_on_server(
            lambda client: client.agent(agent).accept(self._path, digest),
            self._options,
            as_json=self._as_json,
        )
        self._print_one(agent, accepted, "accepted")

    def accept_for_followers(self, template: str | None) -> None:
        """Accept for all followers of a template; of the defaults if it is None."""
        from carrel.cli.commands.bulk_review import accept_for_all, load_followers  # noqa: PLC0415 - so that --help stays quick

        digest = self._digest
        if digest is None:
            followers = run_on_server(
                lambda client: load_followers(client, template, self._path),
                self._options,
                as_json=self._as_json,
            )
            digest = self._offered_digest(followers)
            if digest is None:
                self._print_all([])
                return
            if not self._yes:
                self._require_contents(followers.pins.values())
                followers.show()
                self._confirm(f"Accept this for {followers.pending_count} agents?")
        path, reviewed = self._path, digest
        rows = run_on_server(
            lambda client: accept_for_all(client, template, path, reviewed),
            self._options,
            as_json=self._as_json,
        )
        self._print_all(rows)

    def _offered_digest(self, followers: TemplateFollowers) -> str | None:
        """Return the digest offered to all followers, or None. Exits if there are several."""
        if len(followers.offered_digests) > 1:
            fail("the file changed during the review; try again", as_json=self._as_json)
        return next(iter(followers.offered_digests), None)

    def _require_contents(self, pins: Iterable[Pin]) -> None:
        """Exit if a pin's content cannot be shown."""
        for pin in pins:
            if pin.error:
                fail(formatting.printable(f"{pin.path}: {pin.error}"), as_json=self._as_json)

    def _confirm(self, question: str) -> None:
        if not click.confirm(question, err=True):
            click.echo("Not accepted.", err=True)
            sys.exit(EXIT_FAILED)

    def _print_one(self, agent: str, pin: Pin, result: str) -> None:
        if self._as_json:
            print_json({"ok": True, "result": result, **pin_to_json(pin)})
        else:
            click.echo(f"{agent}: {self._path}: {result}")

    def _print_all(self, rows: Sequence[Mapping[str, Any]]) -> None:
        failed = [row for row in rows if not row["success"]]
        if self._as_json:
            counts = {"accepted": len(rows) - len(failed), "failed": len(failed)}
            print_json({"ok": not failed, **counts, "results": list(rows)})
        elif not rows:
            click.echo(f"{self._path}: no update available for any agent")
        else:
            for row in rows:
                click.echo(formatting.printable(f"{row['agent']}: {_result_text(row)}"))
        if failed:
            sys.exit(EXIT_FAILED)


def _result_text(row: Mapping[str, Any]) -> str:
    if not row["success"]:
        return f"refused: {row['error']}"
    return "accepted" if row["changed"] else "already accepted"
