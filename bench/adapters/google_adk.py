"""Google ADK: its artifact service, and files as bytes."""

from __future__ import annotations

from typing import Any, Final

from google.genai import types

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import AsyncClient
from carrel_client.google_adk import CarrelArtifacts

_SCOPE: Final[dict[str, Any]] = {"app_name": "app", "user_id": "luis", "session_id": "chat"}


async def open_operations() -> list[Operation]:
    files = AsyncClient(URL, TOKEN).workspace(new_workspace())
    artifacts = CarrelArtifacts(files)
    await artifacts.save_artifact(filename="read.md", artifact=_part(0), **_SCOPE)
    await files.upload("plain/read.md", text(0).encode())

    async def load(number: int) -> bytes | None:
        return _data(await artifacts.load_artifact(filename="read.md", **_SCOPE))

    async def load_first(number: int) -> bytes | None:
        unused = CarrelArtifacts(files)
        return _data(await unused.load_artifact(filename="read.md", **_SCOPE))

    async def list_and_read(number: int) -> bytes:
        [row] = await files.list("plain/read")
        return await files.read_bytes(row.path)

    async def save(number: int) -> None:
        await artifacts.save_artifact(filename="adapter.md", artifact=_part(number), **_SCOPE)

    async def upload(number: int) -> None:
        await files.upload("plain/write.md", text(number).encode())

    return [
        Operation(
            "load_artifact / read_bytes", load, lambda number: files.read_bytes("plain/read.md")
        ),
        Operation(
            "load_artifact of one not seen before / list, read_bytes", load_first, list_and_read
        ),
        Operation("save_artifact / upload", save, upload),
    ]


def _part(number: int) -> types.Part:
    return types.Part.from_bytes(data=text(number).encode(), mime_type="text/markdown")


def _data(part: types.Part | None) -> bytes | None:
    return part.inline_data.data if part and part.inline_data else None
