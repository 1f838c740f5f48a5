"""Agent Framework: its file store, and files as bytes."""

from __future__ import annotations

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import AsyncClient
from carrel_client.agent_framework import CarrelFileStore


async def open_operations() -> list[Operation]:
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
