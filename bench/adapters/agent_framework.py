"""Agent Framework: its file store and files as bytes, its history and entries of a transcript."""

from __future__ import annotations

from agent_framework import Message

from bench.adapters.operations import (
    SESSION_ENTRIES,
    TOKEN,
    URL,
    Operation,
    new_agent,
    new_workspace,
    text,
)
from carrel_client import AsyncClient
from carrel_client.agent_framework import CarrelFileStore, CarrelHistoryProvider


async def open_operations() -> list[Operation]:
    return [*await _open_store(), *await _open_history()]


async def _open_store() -> list[Operation]:
    files = AsyncClient(URL, TOKEN).workspace(new_workspace())
    store = CarrelFileStore(files)
    await store.write("read.md", text(0))

    async def get(number: int) -> str:
        return (await files.read_bytes("read.md")).decode()

    async def write(number: int) -> None:
        await store.write("adapter.md", text(number))

    async def upload(number: int) -> None:
        await files.upload("plain.md", text(number).encode())

    return [
        Operation("store.read / read_bytes", lambda number: store.read("read.md"), get),
        Operation("store.write / upload", write, upload),
    ]


async def _open_history() -> list[Operation]:
    client, agent = AsyncClient(URL, TOKEN), new_agent()
    history = CarrelHistoryProvider(client, agent)
    for number in range(SESSION_ENTRIES):
        await history.save_messages("read", [_message(number)])
    entries = await client.agent(agent).sessions.get("read")
    plain = await client.agent(agent).sessions.start("plain")

    async def get_messages(number: int) -> list[str]:
        return [message.text for message in await history.get_messages("read")]

    async def read(number: int) -> list[str]:
        return [entry.content for entry in await entries.read()]

    async def save_messages(number: int) -> None:
        await history.save_messages("adapter", [_message(number)])

    async def append(number: int) -> None:
        await plain.append("user", text(number), item=_message(number).to_dict())

    return [
        Operation("history.get_messages / read", get_messages, read),
        Operation("history.save_messages / append", save_messages, append),
    ]


def _message(number: int) -> Message:
    return Message("user", [text(number)])
