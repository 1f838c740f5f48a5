"""`carrel keys`: lists, creates, rotates and revokes API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.commands.records.subcommands import RecordKind, add_show
from carrel.cli.connection import run_on_server
from carrel.cli.console import Instant, print_json, server_options
from carrel.cli.names import AGENT, KEY, find_key_id
from carrel.cli.record_output import confirm, page_options, print_page, print_result, yes_option

if TYPE_CHECKING:
    from carrel_client import AsyncClient, CreatedKey, Key

_COLUMNS: Final = ("name", "kind", "holder", "prefix", "expiresAt", "lastUsedAt", "id")
_KINDS: Final = click.Choice(["person", "service", "agent"])


@click.group(invoke_without_command=True)
@server_options
@page_options
@click.pass_context
def keys(context: click.Context, /, as_json: bool, **options: Any) -> None:
    """List keys; create, rotate and revoke them.

    The keys are your own; those of an admin's key are all of the tenant. They are shown without
    their secret part.
    """
    if context.invoked_subcommand is not None:
        return
    limit, after = options.pop("limit"), options.pop("after") or ""

    async def load(client: AsyncClient) -> tuple[Any, tuple[Key, ...], dict[str, str]]:
        page = await client.keys.page(limit=limit, cursor=after) if limit else None
        records = await client.keys.list() if page is None else page.items
        return page, records, {} if as_json else await _load_holders(client)

    page, records, holders = run_on_server(load, options, as_json=as_json)
    rows = [row.facts if as_json else _with_holder(row, holders) for row in records]
    print_page("keys", rows, _COLUMNS, as_json=as_json, page=page)


async def _load_holders(client: AsyncClient) -> dict[str, str]:
    """Names of people and agents by id."""
    names = {row.id: row.email for row in await client.people.list()}
    return names | {row.id: row.slug for row in await client.agents.list()}


def _with_holder(key: Key, holders: dict[str, str]) -> dict[str, Any]:
    id = key.person_id or key.agent_id or ""
    return {**key.facts, "holder": holders.get(id, id)}


@keys.command()
@click.argument("name")
@click.option("--kind", type=_KINDS, help="Whose key; a service's by default.")
@click.option("--agent", type=AGENT, help="Agent that the key is bound to, by id or slug.")
@click.option("--workspace", help="Workspace that the key is bound to.")
@click.option("--scope", "scopes", multiple=True, help="Permission; may be repeated. Default: all.")
@click.option("--expires", type=Instant(), help="End of its life (UTC).")
@server_options
def create(name: str, as_json: bool, **options: Any) -> None:
    """Create a key and print it. It cannot be shown again.

    A key for an agent needs --agent. One for a person is yours: invite other people instead.
    """
    kind, agent, workspace = (options.pop(field) for field in ("kind", "agent", "workspace"))
    scopes, expires = options.pop("scopes"), options.pop("expires")
    if agent and kind not in {None, "agent"}:
        raise click.UsageError("--agent needs --kind agent")

    async def create_key(client: AsyncClient) -> CreatedKey:
        return await client.keys.create(
            name,
            "agent" if agent else kind or "service",
            agent_id=agent,
            workspace=workspace,
            scopes=scopes or None,
            expires_at=expires,
        )

    _print_key(run_on_server(create_key, options, as_json=as_json), as_json)


@keys.command()
@click.argument("key", type=KEY)
@server_options
def rotate(key: str, as_json: bool, **options: Any) -> None:
    """Replace a key by a new one and print it. The old one stays valid for an hour.

    KEY is an id, a prefix or a name. The new key cannot be shown again.
    """

    async def rotate_key(client: AsyncClient) -> CreatedKey:
        return await client.keys.rotate(await find_key_id(client, key))

    _print_key(run_on_server(rotate_key, options, as_json=as_json), as_json)


def _print_key(key: CreatedKey, as_json: bool) -> None:
    if as_json:
        print_json(dict(key.facts))
        return
    click.echo(f"key {key.id}; it is not shown again:", err=True)
    click.echo(key.key)


@keys.command()
@click.argument("key", type=KEY)
@click.option("--created-keys", is_flag=True, help="Also the keys and invitations it led to.")
@yes_option
@server_options
def revoke(key: str, created_keys: bool, yes: bool, as_json: bool, **options: Any) -> None:
    """Revoke a key: the next request with it is refused.

    KEY is an id, a prefix or a name. For a stolen key pass --created-keys.
    """
    others = " and the keys that it led to" if created_keys else ""
    confirm(f"Revoke the key {key}{others}?", yes=yes, as_json=as_json)

    async def revoke_key(client: AsyncClient) -> None:
        await client.keys.revoke(await find_key_id(client, key), created_keys=created_keys)

    run_on_server(revoke_key, options, as_json=as_json)
    print_result({"ok": True, "revoked": key}, f"{key}: revoked", as_json=as_json)


add_show(keys, RecordKind("keys", "key", KEY, "an id, a prefix or a name", find=find_key_id))
