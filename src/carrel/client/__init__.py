"""Carrel for runtimes: a server's files and runs, and a workspace as a directory, over HTTP.

It needs httpx and nothing else, and knows no other room of Carrel.
"""

from __future__ import annotations

from carrel.client.approvals import Approvals
from carrel.client.desk import AsyncClient, Client
from carrel.client.errors import (
    Busy,
    CarrelError,
    Failed,
    Forbidden,
    Garbled,
    Gone,
    Incomplete,
    Malformed,
    Missing,
    NotOurs,
    Occupied,
    Overdue,
    Oversized,
    Refused,
    Stale,
    Taken,
    TooLarge,
    Unauthenticated,
    Unfit,
    Unreachable,
    UnsafePath,
)
from carrel.client.events import CONNECTED, Heard
from carrel.client.files import Workspace
from carrel.client.materialising import Materialised
from carrel.client.memories import Dreams, Memories
from carrel.client.prompts import Prompt, PromptBlock, PromptFlaw
from carrel.client.records import Records
from carrel.client.rows import File, FileRow
from carrel.client.runs import Frozen, Run
from carrel.client.sessions import Session, Sessions
from carrel.client.tools import Reply, Tools

__all__ = [
    "CONNECTED",
    "Approvals",
    "AsyncClient",
    "Busy",
    "CarrelError",
    "Client",
    "Dreams",
    "Failed",
    "File",
    "FileRow",
    "Forbidden",
    "Frozen",
    "Garbled",
    "Gone",
    "Heard",
    "Incomplete",
    "Malformed",
    "Materialised",
    "Memories",
    "Missing",
    "NotOurs",
    "Occupied",
    "Overdue",
    "Oversized",
    "Prompt",
    "PromptBlock",
    "PromptFlaw",
    "Records",
    "Refused",
    "Reply",
    "Run",
    "Session",
    "Sessions",
    "Stale",
    "Taken",
    "TooLarge",
    "Tools",
    "Unauthenticated",
    "Unfit",
    "Unreachable",
    "UnsafePath",
    "Workspace",
]
