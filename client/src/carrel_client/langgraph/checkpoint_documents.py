"""Checkpoints and their pending writes as JSON files: paths and documents."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.base import writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from carrel_client.errors import InvalidResponse
from carrel_client.runtimes.path_segments import to_segment

SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class CheckpointKey:
    """Names of one checkpoint."""

    thread: str
    namespace: str
    id: str

    def config(self) -> dict[str, Any]:
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": self.id,
            }
        }


@dataclass(frozen=True, slots=True)
class StoredWrite:
    """One pending write of a task; the number orders them within the task."""

    task: str
    task_path: str
    number: int
    channel: str
    value: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """The document of a checkpoint, as it is in its file."""

    key: CheckpointKey
    parent: str | None
    checkpoint: Mapping[str, str]
    metadata: Mapping[str, str]

    def to_text(self) -> str:
        fields = {
            "threadId": self.key.thread,
            "checkpointNs": self.key.namespace,
            "checkpointId": self.key.id,
            "parentId": self.parent,
            "checkpoint": self.checkpoint,
            "metadata": self.metadata,
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def checkpoint_from_text(path: str, text: str) -> StoredCheckpoint:
    """Raises InvalidResponse if the file is not one of the checkpointer."""
    try:
        fields = json.loads(text)
        names = (fields["threadId"], fields["checkpointNs"], fields["checkpointId"])
        key = CheckpointKey(*map(str, names))
        return StoredCheckpoint(key, fields["parentId"], fields["checkpoint"], fields["metadata"])
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse(f"{path} is not a checkpoint") from None


def writes_to_text(writes: Iterable[StoredWrite]) -> str:
    rows = [
        {
            "task": write.task,
            "taskPath": write.task_path,
            "number": write.number,
            "channel": write.channel,
            "value": write.value,
        }
        for write in writes
    ]
    return json.dumps({"writes": rows}, ensure_ascii=False, separators=(",", ":"))


def writes_from_text(path: str, text: str) -> list[StoredWrite]:
    """Raises InvalidResponse if the file is not one of the checkpointer."""
    try:
        return [
            StoredWrite(row["task"], row["taskPath"], row["number"], row["channel"], row["value"])
            for row in json.loads(text)["writes"]
        ]
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse(f"{path} has no pending writes") from None


def in_order(writes: Iterable[StoredWrite]) -> list[StoredWrite]:
    """The order in which a super-step applies writes."""
    return sorted(writes, key=lambda item: writes_sort_key(item.task_path, item.task, item.number))


def merge_writes(stored: Sequence[StoredWrite], added: Sequence[StoredWrite]) -> list[StoredWrite]:
    """Writes of one task: a regular one is kept, a special one (negative number) is replaced."""
    merged = {write.number: write for write in stored}
    for write in added:
        if write.number < 0 or write.number not in merged:
            merged[write.number] = write
    return list(merged.values())


def encode_value(serde: SerializerProtocol, value: Any) -> dict[str, str]:
    kind, data = serde.dumps_typed(value)
    return {"type": kind, "data": b64encode(data).decode("ascii")}


def decode_value(serde: SerializerProtocol, stored: Mapping[str, str]) -> Any:
    return serde.loads_typed((stored["type"], b64decode(stored["data"])))


def thread_directory(prefix: str, thread: str) -> str:
    return f"{prefix}/{_segment(thread)}"


def namespace_directory(prefix: str, thread: str, namespace: str) -> str:
    return f"{thread_directory(prefix, thread)}/{_segment(namespace)}"


def checkpoint_stem(prefix: str, key: CheckpointKey) -> str:
    """What the paths of a checkpoint and its writes begin with."""
    return f"{namespace_directory(prefix, key.thread, key.namespace)}/{_segment(key.id)}"


def checkpoint_path(prefix: str, key: CheckpointKey) -> str:
    return checkpoint_stem(prefix, key) + SUFFIX


def writes_path(prefix: str, key: CheckpointKey, task: str) -> str:
    return f"{checkpoint_stem(prefix, key)}/{_segment(task)}{SUFFIX}"


def stem_of(prefix: str, path: str) -> str:
    """The stem of the checkpoint to which a path belongs."""
    depth = prefix.count("/") + 4
    return "/".join(path.split("/")[:depth]).removesuffix(SUFFIX)


def _segment(text: str) -> str:
    """A segment for any text; one that is too long is replaced by its digest."""
    try:
        return to_segment(text, suffix=SUFFIX).removesuffix(SUFFIX)
    except ValueError:
        return f"%{hashlib.sha256(text.encode()).hexdigest()}"
