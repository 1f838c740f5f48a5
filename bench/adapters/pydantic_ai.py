"""Pydantic AI: its workspace backend, and files as bytes."""

from __future__ import annotations

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import AsyncClient
from carrel_client.pydantic_ai import CarrelWorkspace


async def open_operations() -> list[Operation]:
    client, id = AsyncClient(URL, TOKEN), new_workspace()
    files, workspace = client.workspace(id), CarrelWorkspace(client, id)
    await files.upload("read.md", text(0).encode())

    async def write(number: int) -> None:
        await workspace.write_bytes("/workspace/adapter.md", text(number).encode())

    async def upload(number: int) -> None:
        await files.upload("plain.md", text(number).encode())

    return [
        Operation(
            "workspace.read_bytes / read_bytes",
            lambda number: workspace.read_bytes("/workspace/read.md"),
            lambda number: files.read_bytes("read.md"),
        ),
        Operation("workspace.write_bytes / upload", write, upload),
    ]
