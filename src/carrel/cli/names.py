"""Parameter types of names and files, which shells complete, and ids of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.targets import TargetError, parse_file_target, parse_owner, parse_target

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from carrel_client import AsyncClient, Key, Webhook


class RecordName(click.ParamType):  # type: ignore[type-arg]  # not every click has them
    """Name of a record of one collection; shells complete it."""

    def __init__(self, name: str, collection: str) -> None:
        self.name, self._collection = name, collection

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from carrel.cli.completion import complete_record  # noqa: PLC0415 - so that --help stays quick

        return complete_record(ctx, self._collection, incomplete)


AGENT: Final = RecordName("text", "agents")
"""An agent by id or slug."""
TEMPLATE: Final = RecordName("text", "templates")
"""A template by id or slug."""
PERSON: Final = RecordName("text", "people")
"""A person by id or e-mail address."""
KEY: Final = RecordName("text", "keys")
"""A key by id, prefix or name."""
SECRET: Final = RecordName("text", "secrets")
WEBHOOK: Final = RecordName("text", "webhooks")
"""A webhook by id or URL."""


class _TargetParam(click.ParamType):  # type: ignore[type-arg]  # not every click has them
    """Click parameter type that turns a TargetError into a usage error."""

    def __init__(self, name: str, parse: Any) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except TargetError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from carrel.cli.completion import complete_file  # noqa: PLC0415 - so that --help stays quick

        return complete_file(ctx, incomplete)


FILE: Final = _TargetParam("file", parse_file_target)
OWNER: Final = _TargetParam("owner", parse_owner)
TARGET: Final = _TargetParam("owner or file", parse_target)


async def find_person_id(client: AsyncClient, person: str) -> str:
    """Return the id of the person with this e-mail address, or the text as it is."""
    if "@" not in person:
        return person
    ids = {record.email.casefold(): record.id for record in await client.people.list()}
    return ids.get(person.casefold(), person)


async def find_key_id(client: AsyncClient, name: str) -> str:
    """Return the id of the one key with this id, prefix or name. Raises Refusal."""

    def names(key: Key) -> tuple[str, ...]:
        return key.id, key.prefix, key.name

    return _one_id("key", name, [key for key in await client.keys.list() if name in names(key)])


async def find_webhook_id(client: AsyncClient, name: str) -> str:
    """Return the id of the one webhook with this id or URL. Raises Refusal."""

    def names(webhook: Webhook) -> tuple[str, ...]:
        return webhook.id, webhook.url

    webhooks = await client.webhooks.list()
    return _one_id("webhook", name, [row for row in webhooks if name in names(row)])


def _one_id(noun: str, name: str, matches: list[Any]) -> str:
    from carrel_client import Conflict, NotFound  # noqa: PLC0415 - so that --help stays quick

    if not matches:
        raise NotFound(f"no such {noun}: {name}")
    if len(matches) > 1:
        ids = ", ".join(match.id for match in matches)
        raise Conflict(f"{len(matches)} {noun}s have the name {name}; use an id: {ids}")
    return str(matches[0].id)
