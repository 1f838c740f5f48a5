"""Google ADK: its artifacts and files as bytes, its sessions and entries of a transcript."""

from __future__ import annotations

from typing import Any, Final

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types

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
from carrel_client.google_adk import CarrelArtifacts, CarrelSessions

_USER: Final[dict[str, Any]] = {"app_name": "app", "user_id": "luis"}
_SCOPE: Final[dict[str, Any]] = {"app_name": "app", "user_id": "luis", "session_id": "chat"}


async def open_operations() -> list[Operation]:
    return [*await _open_artifacts(), *await _open_sessions()]


async def _open_artifacts() -> list[Operation]:
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


async def _open_sessions() -> list[Operation]:
    client, agent = AsyncClient(URL, TOKEN), new_agent()
    service = CarrelSessions(client, agent)
    opened = await service.create_session(**_USER, session_id="read", state={"user:name": "Luis"})
    session = await service.create_session(**_USER, session_id="adapter")
    for number in range(SESSION_ENTRIES):
        await service.append_event(opened, _event(number))
    id = CarrelSessions.carrel_session_id("app", "luis", "read")
    entries = await client.agent(agent).sessions.get(id)
    plain = await client.agent(agent).sessions.start("plain")

    async def get_session(number: int) -> list[str]:
        return _texts(await service.get_session(**_USER, session_id="read"))

    async def get_first(number: int) -> list[str]:
        unused = CarrelSessions(client, agent)
        return _texts(await unused.get_session(**_USER, session_id="read"))

    async def read(number: int) -> list[str]:
        return [entry.content for entry in await entries.read() if entry.role == "user"]

    async def append_event(number: int) -> None:
        await service.append_event(session, _event(number))

    async def append(number: int) -> None:
        await plain.append("user", text(number), item=_event(number).model_dump(mode="json"))

    return [
        Operation("get_session / read", get_session, read),
        Operation("get_session of one not seen before / read", get_first, read),
        Operation("append_event / append", append_event, append),
    ]


def _event(number: int) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text(number))])
    return Event(author="user", content=content)


def _texts(session: Session | None) -> list[str]:
    contents = [event.content for event in session.events] if session else []
    return [content.parts[0].text or "" for content in contents if content and content.parts]
