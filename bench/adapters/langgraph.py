"""LangGraph: its store and its checkpoints, and files with the same text."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint

from bench.adapters.operations import TOKEN, URL, Operation, new_workspace, text
from carrel_client import Client
from carrel_client.langgraph import CarrelSaver, CarrelStore

_CHECKPOINTS: Final = 20
"""Of the thread that is read, each with the writes of a task."""


async def open_operations() -> list[Operation]:
    return [*_open_store(), *_open_checkpoints()]


def _open_store() -> list[Operation]:
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


def _open_checkpoints() -> list[Operation]:
    client = Client(URL, TOKEN)
    files = client.workspace(new_workspace())
    saver = CarrelSaver(files)
    config = _config("read")
    for number in range(_CHECKPOINTS):
        if number:
            saver.put_writes(config, [("text", text(number))], "task")
        config = saver.put(config, _checkpoint(number), {}, {})
    path = files.list()[-1].path
    written = _config("adapter")

    def get_tuple(number: int) -> Any:
        loaded = saver.get_tuple(_config("read"))
        return loaded and loaded.checkpoint["channel_values"]["text"]

    def find_and_get(number: int) -> Any:
        [row] = files.list(path.rpartition("/")[0], content=True, last=1)
        return _state_of(saver, row)

    def put(number: int) -> None:
        saver.put(written, _checkpoint(number), {}, {})

    def put_plain(number: int) -> None:
        body = json.dumps(_encoded(saver, number))
        files.put(f"plain/{number}.json", body, content_type="application/json")

    return [
        Operation("checkpointer.get_tuple of the latest / list", get_tuple, find_and_get),
        Operation("checkpointer.put / put", put, put_plain),
    ]


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def _checkpoint(number: int) -> Checkpoint:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"text": text(number)}
    return checkpoint


def _encoded(saver: CarrelSaver, number: int) -> list[str]:
    kind, content = saver.serde.dumps_typed(_checkpoint(number))
    return [kind, b64encode(content).decode()]


def _state_of(saver: CarrelSaver, row: Any) -> Any:
    stored = json.loads(row.content)["checkpoint"]
    checkpoint = saver.serde.loads_typed((stored["type"], b64decode(stored["data"])))
    return checkpoint["channel_values"]["text"]
