"""OpenAI Agents SDK: its session, and entries of a transcript."""

from __future__ import annotations

from bench.adapters.operations import TOKEN, URL, Operation, new_agent, text
from carrel_client import AsyncClient
from carrel_client.openai_agents import CarrelSession

ITEMS = 4


async def open_operations() -> list[Operation]:
    client, agent = AsyncClient(URL, TOKEN), new_agent()
    items = CarrelSession(client, agent, "read")
    await items.add_items([_item(number) for number in range(ITEMS)])
    entries = await client.agent(agent).sessions.get("read")
    adapter = CarrelSession(client, agent, "adapter")
    plain = await client.agent(agent).sessions.start("plain")

    async def get_items(number: int) -> list[object]:
        return list(await items.get_items())

    async def read(number: int) -> list[object]:
        return [entry.item for entry in await entries.read()]

    async def add_items(number: int) -> None:
        await adapter.add_items([_item(number)])

    async def append(number: int) -> None:
        await plain.append("user", item=_item(number))

    return [
        Operation("session.get_items / read", get_items, read),
        Operation("session.add_items / append", add_items, append),
    ]


def _item(number: int) -> dict[str, str]:
    return {"role": "user", "content": text(number)}
