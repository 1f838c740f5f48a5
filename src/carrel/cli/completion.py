"""Completion of records and files from the server, and the shells' scripts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from carrel.cli.formatting import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem, ShellComplete

    from carrel_client import AsyncClient

SHELLS: Final = ("bash", "zsh", "fish")
COMPLETION_VARIABLE: Final = "_CARREL_COMPLETE"
_TIMEOUT_SECONDS: Final = 1.0
"""A person waits: without an answer by then, nothing is completed."""
_MAX_RECORDS: Final = 100
_UNFINISHED: Final = "prefix"
"""Type of completions that go on: no space follows them."""

_SAFE_NAME: Final = re.compile(r"\w[\w@%+./-]*")
"""Others are not completed: a shell would split, expand or run them, and agents name files."""

_BASH_PLAIN: Final = "        elif [[ $type == 'plain' ]]; then\n"
_BASH_PREFIX: Final = (
    "        elif [[ $type == 'prefix' ]]; then\n"
    "            COMPREPLY+=($value)\n"
    "            compopt -o nospace\n"
)
_ZSH_PLAIN: Final = '        elif [[ "$type" == "dir" ]]; then\n'
_ZSH_PREFIX: Final = (
    '        elif [[ "$type" == "prefix" ]]; then\n            compadd -U -S "" -- "$key"\n'
)
_FISH_PLAIN: Final = '        else if test $metadata[1] = "plain";\n'
_FISH_PREFIX: Final = (
    '        else if test $metadata[1] = "prefix";\n            echo $metadata[2];\n'
)


def completion_classes() -> Mapping[str, type[ShellComplete]]:
    """Click's completion of each shell, with a type that no space follows."""
    from click.shell_completion import (  # noqa: PLC0415 - only for completion
        BashComplete,
        FishComplete,
        ZshComplete,
    )

    bash = BashComplete.source_template.replace(_BASH_PLAIN, _BASH_PREFIX + _BASH_PLAIN)
    zsh = ZshComplete.source_template.replace(_ZSH_PLAIN, _ZSH_PREFIX + _ZSH_PLAIN)
    fish = FishComplete.source_template.replace(_FISH_PLAIN, _FISH_PREFIX + _FISH_PLAIN)
    return {
        "bash": type("CarrelBash", (BashComplete,), {"source_template": bash}),
        "zsh": type("CarrelZsh", (ZshComplete,), {"source_template": zsh}),
        "fish": type("CarrelFish", (FishComplete,), {"source_template": fish}),
    }


def complete_record(
    context: click.Context, collection: str, incomplete: str
) -> list[CompletionItem]:
    """Names of the records of a collection that begin with a text."""

    async def load(client: AsyncClient) -> list[CompletionItem]:
        return _items(await _load_names(client, collection, incomplete), incomplete)

    return _ask_server(context, load)


def complete_file(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Places, or what is directly in the directory of a place."""

    async def load(client: AsyncClient) -> list[CompletionItem]:
        return await _load_places_or_files(client, incomplete)

    return _ask_server(context, load)


async def _load_places_or_files(client: AsyncClient, incomplete: str) -> list[CompletionItem]:
    from carrel.cli.connection import files_of  # noqa: PLC0415 - only for completion
    from carrel.cli.targets import parse_target  # noqa: PLC0415 - as above

    kind, slash, rest = incomplete.partition("/")
    if not slash:
        agents = await _load_names(client, "agents", kind)
        places = [*("templates", "defaults", "workspaces"), *(name for name, _ in agents)]
        return _items([(f"{place}/", "") for place in places], incomplete)
    if kind in {"agents", "templates"} and "/" not in rest:
        names = await _load_names(client, kind, rest)
        return _items([(f"{kind}/{name}/", text) for name, text in names], incomplete)
    place, _, _ = incomplete.rpartition("/")
    target = parse_target(place)
    entries = await files_of(client, target.owner).list_directory(target.path)
    owner = place.removesuffix(target.path)
    root = owner if owner.endswith("/") else f"{owner}/"
    paths = [(f"{root}{entry.path}{'/' if entry.is_directory else ''}", "") for entry in entries]
    return _items(paths, incomplete)


async def _load_names(
    client: AsyncClient, collection: str, incomplete: str
) -> list[tuple[str, str]]:
    """Names of records, with what tells them apart."""
    match collection:
        case "agents":
            agents = await client.agents.page(limit=_MAX_RECORDS, q=incomplete)
            return [(agent.slug, agent.name) for agent in agents.items]
        case "templates":
            templates = await client.templates.page(limit=_MAX_RECORDS, q=incomplete)
            return [(template.slug, template.name) for template in templates.items]
        case "people":
            people = await client.people.page(limit=_MAX_RECORDS, q=incomplete)
            return [(person.email, person.name) for person in people.items]
        case "keys":
            return [(key.id, key.name) for key in await client.keys.list()]
        case "secrets":
            return [(secret.id, "") for secret in await client.secrets.list()]
        case _:
            return [(webhook.id, webhook.url) for webhook in await client.webhooks.list()]


def _items(names: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for completion

    return [
        CompletionItem(name, _type_of(name), printable(text) or None)
        for name, text in names
        if name.startswith(incomplete) and _SAFE_NAME.fullmatch(name)
    ]


def _type_of(name: str) -> str:
    return _UNFINISHED if name.endswith("/") else "plain"


def _ask_server(
    context: click.Context, load: Callable[[AsyncClient], Awaitable[list[CompletionItem]]]
) -> list[CompletionItem]:
    """Completions from the server; none if it cannot be asked, or not in time."""
    import asyncio  # noqa: PLC0415 - only for completion

    from carrel.cli.targets import TargetError  # noqa: PLC0415 - as above
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient, CarrelError  # noqa: PLC0415 - as above

    options: dict[str, Any] = {}
    for name in ("url", "token"):
        options[name] = context.params.get(name)

    async def ask() -> list[CompletionItem]:
        settings = load_settings(options)
        if not settings.token:
            return []
        async with AsyncClient(settings.url, settings.token, timeout=_TIMEOUT_SECONDS) as client:
            return await asyncio.wait_for(load(client), _TIMEOUT_SECONDS)

    try:
        return asyncio.run(ask())
    except (CarrelError, StoreUnavailable, TargetError, TimeoutError, OSError):
        return []
