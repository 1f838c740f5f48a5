"""Strands: its storage and files as bytes, its sessions and entries of a transcript."""

from __future__ import annotations

from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from bench.adapters.operations import (
    SESSION_ENTRIES,
    TOKEN,
    URL,
    Operation,
    new_agent,
    new_workspace,
    text,
)
from carrel_client import AsyncClient, Client
from carrel_client.strands import CarrelSessionRepository, CarrelStorage

_AGENT = SessionAgent(agent_id="main", state={}, conversation_manager_state={})


async def open_operations() -> list[Operation]:
    return [*await _open_storage(), *_open_sessions()]


async def _open_storage() -> list[Operation]:
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


def _open_sessions() -> list[Operation]:
    client, agent = Client(URL, TOKEN), new_agent()
    repository = CarrelSessionRepository(client, agent)
    for name in ("read", "adapter"):
        repository.create_session(Session(session_id=name, session_type=SessionType.AGENT))
        repository.create_agent(name, _AGENT)
    for number in range(SESSION_ENTRIES):
        repository.create_message("read", "main", _message(number))
    entries = client.agent(agent).sessions.get("read")
    plain = client.agent(agent).sessions.start("plain")

    def list_messages(number: int) -> list[str]:
        messages = repository.list_messages("read", "main")
        return [message.message["content"][0]["text"] for message in messages]

    def read(number: int) -> list[str]:
        return [entry.content for entry in entries.read() if entry.role == "user"]

    def create_message(number: int) -> None:
        repository.create_message("adapter", "main", _message(number))

    def append(number: int) -> None:
        plain.append("user", text(number), item=_message(number).to_dict())

    return [
        Operation("sessions.list_messages / read", list_messages, read),
        Operation("sessions.create_message / append", create_message, append),
    ]


def _message(number: int) -> SessionMessage:
    content = {"role": "user", "content": [{"text": text(number)}]}
    return SessionMessage.from_message(content, number)
