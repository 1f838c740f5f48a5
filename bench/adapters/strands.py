"""Strands: its storage, and files as bytes."""

from __future__ import annotations

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import AsyncClient
from carrel_client.strands import CarrelStorage


async def open_operations() -> list[Operation]:
    files = AsyncClient(URL, TOKEN).workspace(new_workspace())
    storage = CarrelStorage(files, prefix="storage")
    await storage.write("read.md", text(0).encode())

    async def write(number: int) -> None:
        await storage.write("adapter.md", text(number).encode())

    async def upload(number: int) -> None:
        await files.upload("storage/plain.md", text(number).encode())

    return [
        Operation(
            "storage.read / read_bytes",
            lambda number: storage.read("read.md"),
            lambda number: files.read_bytes("storage/read.md"),
        ),
        Operation("storage.write / upload", write, upload),
    ]
