"""deepagents: its backend, and files read as bytes and put as text."""

from __future__ import annotations

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import Client
from carrel_client.deepagents import CarrelBackend


async def open_operations() -> list[Operation]:
    files = Client(URL, TOKEN).workspace(new_workspace())
    backend = CarrelBackend(files)
    files.put("read.md", text(0))

    def read(number: int) -> str | None:
        data = backend.read("/read.md").file_data
        return data["content"] if data else None

    def write(number: int) -> None:
        if problem := backend.write("/adapter.md", text(number)).error:
            raise RuntimeError(problem)

    def put(number: int) -> None:
        files.put("plain.md", text(number))

    return [
        Operation(
            "backend.read / read_bytes", read, lambda number: files.read_bytes("read.md").decode()
        ),
        Operation("backend.write / put", write, put),
    ]
