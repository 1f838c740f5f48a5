"""Carrel for runtimes: a server's files and runs, and a workspace as a directory, over HTTP.

It needs httpx and nothing else, and knows no other room of Carrel.
"""

from __future__ import annotations

from carrel.client.agent_workspace import Workspace
from carrel.client.approvals import Approvals
from carrel.client.client import AsyncClient, Client
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
from carrel.client.file_models import File, FileRow
from carrel.client.files import Files
from carrel.client.history import Explanation, Said, Version
from carrel.client.materialize import Materialised
from carrel.client.memories import Dreams, Memories
from carrel.client.pins import Pin, Reviewed, TemplateFiles
from carrel.client.prompts import Prompt, PromptBlock, PromptFlaw
from carrel.client.records import People, Records
from carrel.client.runs import Difference, Frozen, Run
from carrel.client.sessions import Session, Sessions
from carrel.client.tools import Reply, Tools

__all__ = [
    "CONNECTED",
    "Approvals",
    "AsyncClient",
    "Busy",
    "CarrelError",
    "Client",
    "Difference",
    "Dreams",
    "Explanation",
    "Failed",
    "File",
    "FileRow",
    "Files",
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
    "People",
    "Pin",
    "Prompt",
    "PromptBlock",
    "PromptFlaw",
    "Records",
    "Refused",
    "Reply",
    "Reviewed",
    "Run",
    "Said",
    "Session",
    "Sessions",
    "Stale",
    "Taken",
    "TemplateFiles",
    "TooLarge",
    "Tools",
    "Unauthenticated",
    "Unfit",
    "Unreachable",
    "UnsafePath",
    "Version",
    "Workspace",
]
