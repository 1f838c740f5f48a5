"""A whole world in dictionaries: for tests, for docs and for trying things out."""

from __future__ import annotations

from carrel.adapters.memory.blobs import MemoryBlobs, MemoryObjects
from carrel.adapters.memory.deliveries import MemoryDeliveries
from carrel.adapters.memory.events import MemoryEvents
from carrel.adapters.memory.idempotency import MemoryIdempotencyStore
from carrel.adapters.memory.leader_lock import MemoryLeaderLock
from carrel.adapters.memory.object_store import MemoryObjectStore
from carrel.adapters.memory.recalls import MemoryRecalls
from carrel.adapters.memory.records import MemoryRecords
from carrel.adapters.memory.runs import MemoryRuns
from carrel.adapters.memory.sessions import MemorySessions
from carrel.adapters.memory.state import MemoryState
from carrel.adapters.memory.trees import MemoryTrees

__all__ = [
    "MemoryBlobs",
    "MemoryDeliveries",
    "MemoryEvents",
    "MemoryIdempotencyStore",
    "MemoryLeaderLock",
    "MemoryObjectStore",
    "MemoryObjects",
    "MemoryRecalls",
    "MemoryRecords",
    "MemoryRuns",
    "MemorySessions",
    "MemoryState",
    "MemoryStore",
    "MemoryTrees",
]


class MemoryStore:
    """Every port of a store over one state. No verb waits in between, so each is one step."""

    def __init__(self) -> None:
        self.state = MemoryState()
        self.trees = MemoryTrees(self.state)
        self.blobs = MemoryBlobs(self.state)
        self.records = MemoryRecords(self.state)
        self.runs = MemoryRuns(self.state)
        self.events = MemoryEvents(self.state)
        self.idempotency = MemoryIdempotencyStore(self.state)
        self.deliveries = MemoryDeliveries(self.state)
        self.sessions = MemorySessions(self.state)
        self.recalls = MemoryRecalls(self.state)
