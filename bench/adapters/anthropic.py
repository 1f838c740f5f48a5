"""Anthropic: the memory tool, and files read and created."""

from __future__ import annotations

from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818ViewCommand,
)

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import Client
from carrel_client.anthropic import CarrelMemoryTool


async def open_operations() -> list[Operation]:
    files = Client(URL, TOKEN).workspace(new_workspace())
    tool = CarrelMemoryTool(files)
    files.put("memory/read.md", text(0))
    view = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/read.md")

    def read(number: int) -> str:
        lines = tool.view(view).split("\n")[1:]
        return "\n".join(line.partition("\t")[2] for line in lines)

    def create(number: int) -> None:
        path = f"/memories/adapter-{number}.md"
        tool.create(
            BetaMemoryTool20250818CreateCommand(command="create", path=path, file_text=text(number))
        )

    def put(number: int) -> None:
        files.put(f"memory/plain-{number}.md", text(number), if_none_match="*")

    return [
        Operation("tool.view / get", read, lambda number: files.get("memory/read.md").content),
        Operation("tool.create / put", create, put),
    ]
