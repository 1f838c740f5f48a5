"""`carrel accept` and `decline`: decide about the offered version of a pinned file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from carrel.cli import formatting
from carrel.cli.commands.pins import load_pins, pin_to_json, print_offer, require_offer
from carrel.cli.connection import run_on_server
from carrel.cli.console import EXIT_FAILED, fail, print_json, server_options

if TYPE_CHECKING:
    from carrel.cli.commands.bulk_review import TemplateFollowers
    from carrel_client import AsyncClient, BulkReview, Pin

_NOT_INTERACTIVE = (
    "no terminal to ask on: pass --sha256 of the reviewed version, or --yes for the latest"
)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="[AGENT] PATH")
@server_options
@click.option("--template", help="Accept for every agent of this template; omit AGENT.")
@click.option("--defaults", is_flag=True, help="Accept for all that inherit it; omit AGENT.")
@click.option(
    "--sha256", metavar="DIGEST", help="Reviewed version, or nothing for a removal; do not ask."
)
@click.option("--yes", is_flag=True, help="Accept the latest version; do not ask.")
@click.option("--count", type=click.IntRange(1), help="With --template: for so many agents.")
@click.option(
    "--share", type=click.FloatRange(0, 100, min_open=True), help="… for so many percent."
)
@click.option("--tag", help="… for agents with this tag.")
@click.option("--agent", "agents", multiple=True, help="… for this agent; repeatable.")
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
    part = {name: options.pop(name) for name in ("count", "share", "tag", "agents")}
    part = {name: value for name, value in part.items() if value}
    if part and not for_all:
        raise click.UsageError("a part of the agents needs --template or --defaults")
    offer = None if sha256 is None else Offer(parse_offer_option(sha256))
    if not (offer or yes) and (as_json or not formatting.is_interactive()):
        raise click.UsageError(_NOT_INTERACTIVE)
    review = _PathReview(names[-1], offer, part, yes, as_json, options)
    review.accept_for_followers(template) if for_all else review.accept_for_agent(names[0])


class Offer(NamedTuple):
    """Reviewed version; None is the removal of the file."""

    sha256: str | None


def parse_offer_option(text: str) -> str | None:
    """Return the hex digits of a digest, None for a removal. Raises UsageError."""
    return None if text == "nothing" else parse_digest_option(text)


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
        self,
        path: str,
        offer: Offer | None,
        part: Mapping[str, Any],
        yes: bool,
        as_json: bool,
        options: Mapping[str, Any],
    ) -> None:
        self._path, self._offer, self._part, self._yes = path, offer, part, yes
        self._as_json, self._options = as_json, options

    def accept_for_agent(self, agent: str) -> None:
        offer = self._offer
        if offer is None:
            [pin] = run_on_server(
                lambda client: load_pins(client, agent, self._path),
                self._options,
                as_json=self._as_json,
            )
            if not pin.update_available:
                self._print_one(agent, pin, "nothing newer is offered")
                return
            if not self._yes:
                self._require_contents([pin])
                print_offer(pin)
                self._confirm(f"Accept this for {agent}?")
            offer = Offer(pin.latest_sha256)
        digest = offer.sha256
        accepted = run_on_server(
            lambda client: client.agent(agent).accept(self._path, digest),
            self._options,
            as_json=self._as_json,
        )
        self._print_one(agent, accepted, "accepted")

    def accept_for_followers(self, template: str | None) -> None:
        """Accept for all followers of a template; of the defaults if it is None."""
        from carrel.cli.commands.bulk_review import accept_for_all, load_followers  # noqa: PLC0415 - so that --help stays quick

        offer = self._offer
        if offer is None:
            followers = run_on_server(
                lambda client: load_followers(client, template, self._path),
                self._options,
                as_json=self._as_json,
            )
            if not followers.pins:
                self._print_all([])
                return
            offer = self._offered(followers)
            if not self._yes:
                self._require_contents(followers.pins.values())
                followers.show()
                agents_text = "a part of " if self._part else ""
                self._confirm(f"Accept this for {agents_text}{followers.pending_count} agents?")
        path, reviewed, part = self._path, offer.sha256, self._part
        review, rows = run_on_server(
            lambda client: accept_for_all(client, template, path, reviewed, part),
            self._options,
            as_json=self._as_json,
        )
        self._print_all(rows, review)

    def _offered(self, followers: TemplateFollowers) -> Offer:
        """Return what is offered to all followers. Exits if it is not the same."""
        if len(followers.offered_digests) > 1:
            fail("the file changed during the review; try again", as_json=self._as_json)
        return Offer(next(iter(followers.offered_digests)))

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

    def _print_all(
        self, rows: Sequence[Mapping[str, Any]], review: BulkReview | None = None
    ) -> None:
        failed = [row for row in rows if not row["success"]]
        if self._as_json:
            counts = {"accepted": len(rows) - len(failed), "failed": len(failed)}
            facts = {"reviewId": review.id, "waiting": list(review.waiting)} if review else {}
            print_json({"ok": not failed, **counts, "results": list(rows), **facts})
        elif not rows:
            click.echo(f"{self._path}: no update available for any agent")
        else:
            for row in rows:
                click.echo(formatting.printable(f"{row['agent']}: {_result_text(row)}"))
            if review and review.waiting:
                click.echo(f"{len(review.waiting)} agents wait", err=True)
        if failed:
            sys.exit(EXIT_FAILED)


def _result_text(row: Mapping[str, Any]) -> str:
    if not row["success"]:
        return f"refused: {row['error']}"
    return "accepted" if row["changed"] else "already accepted"


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="[AGENT] PATH")
@server_options
@click.option("--reason", required=True, help="Why; stored in the history and the audit log.")
@click.option("--template", help="Decline for every agent of this template; omit AGENT.")
@click.option("--defaults", is_flag=True, help="Decline for all that inherit it; omit AGENT.")
@click.option("--sha256", metavar="DIGEST", help="Reviewed version, or nothing for a removal.")
def decline(
    names: Sequence[str], as_json: bool, reason: str, sha256: str | None, **options: Any
) -> None:
    """Decline the offered version of a pinned file.

    It is no longer offered; the next version is. Accepting it later takes the decline back. AGENT
    is an id or a slug. Without --sha256 the latest version is declined; --template and --defaults
    need it.
    """
    template, defaults = options.pop("template"), options.pop("defaults")
    if template and defaults:
        raise click.UsageError("expected --template or --defaults, not both")
    for_all = bool(template or defaults)
    if len(names) != (1 if for_all else 2):
        raise click.UsageError("expected AGENT and PATH, or --template or --defaults and PATH")
    if for_all and sha256 is None:
        raise click.UsageError("--template and --defaults need --sha256")
    if for_all:
        _decline_for_all(names[0], template, sha256 or "", reason, options, as_json=as_json)
    else:
        _decline_for_one(names[0], names[1], sha256, reason, options, as_json=as_json)


def _decline_for_one(
    agent: str,
    path: str,
    sha256: str | None,
    reason: str,
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    async def send(client: AsyncClient) -> Pin:
        if sha256 is not None:
            digest = parse_offer_option(sha256)
        else:
            [pin] = await load_pins(client, agent, path)
            digest = require_offer(pin).latest_sha256
        return await client.agent(agent).decline(path, digest, reason)

    pin = run_on_server(send, options, as_json=as_json)
    if as_json:
        print_json({"ok": True, **pin_to_json(pin)})
    else:
        click.echo(f"{agent}: {path}: declined")


def _decline_for_all(
    path: str,
    template: str | None,
    sha256: str,
    reason: str,
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    from carrel.cli.commands.bulk_review import review_rows  # noqa: PLC0415 - so that --help stays quick

    digest = parse_offer_option(sha256)

    async def send(client: AsyncClient) -> tuple[str | None, list[dict[str, Any]]]:
        files = client.defaults if template is None else client.template(template)
        review = await files.decline(path, digest, reason)
        return review.id, await review_rows(client, template, review.outcomes)

    id, rows = run_on_server(send, options, as_json=as_json)
    failed = [row for row in rows if not row["success"]]
    if as_json:
        counts = {"declined": len(rows) - len(failed), "failed": len(failed)}
        print_json({"ok": not failed, "reviewId": id, **counts, "results": rows})
    elif not rows:
        click.echo(f"{path}: no update available for any agent")
    else:
        for row in rows:
            text = "declined" if row["success"] else f"refused: {row['error']}"
            click.echo(formatting.printable(f"{row['agent']}: {text}"))
    if failed:
        sys.exit(EXIT_FAILED)
