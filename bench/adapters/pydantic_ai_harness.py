"""Pydantic AI harness: its memory store, and files read and replaced on their condition."""

from __future__ import annotations

from pydantic_ai_harness.memory import MemoryOperation

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import AsyncClient
from carrel_client.pydantic_ai_harness import CarrelMemoryStore


async def open_operations() -> list[Operation]:
    files = AsyncClient(URL, TOKEN).workspace(new_workspace())
    store = CarrelMemoryStore(files)
    await store.write("read.md", text(0), expected_version=None)
    versions: dict[str, str | None] = {}

    async def read(number: int) -> str | None:
        file = await store.read("read.md", max_chars=10_000)
        return file.content if file else None

    async def get(number: int) -> str:
        return (await files.get("memories/read.md")).content

    async def write(number: int) -> None:
        expected = versions.get("adapter")
        written = await store.write("adapter.md", text(number), expected_version=expected)
        versions["adapter"] = written.version

    async def write_once(number: int) -> None:
        operation = MemoryOperation(id=f"operation-{number}", fingerprint="a")
        expected = versions.get("operation")
        written = await store.write(
            "operation.md", text(number), expected_version=expected, operation=operation
        )
        versions["operation"] = written.version

    async def put(number: int) -> None:
        expected = versions.get("plain")
        written = await files.put("memories/plain.md", text(number), if_match=expected)
        versions["plain"] = written.etag

    return [
        Operation("store.read / get", read, get),
        Operation("store.write / put", write, put),
        Operation("store.write of an operation / put", write_once, put),
    ]
