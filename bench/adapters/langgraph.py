"""LangGraph: its store, and files with the same text."""

from __future__ import annotations

import json

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import Client
from carrel_client.langgraph import CarrelStore


async def open_operations() -> list[Operation]:
    files = Client(URL, TOKEN).workspace(new_workspace())
    store = CarrelStore(files)
    store.put(("notes",), "read", {"text": text(0)})
    [row] = files.list()

    def read(number: int) -> str | None:
        item = store.get(("notes",), "read")
        return item.value["text"] if item else None

    def get(number: int) -> str:
        content: str = json.loads(files.get(row.path).content)["value"]["text"]
        return content

    def write(number: int) -> None:
        store.put(("notes",), "adapter", {"text": text(number)})

    def put(number: int) -> None:
        files.put("plain.json", text(number), content_type="application/json")

    return [Operation("store.get / get", read, get), Operation("store.put / put", write, put)]
