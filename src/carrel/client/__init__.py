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
from carrel.client.pins import Pin, Reviewed, TemplateFiles
from carrel.client.prompts import Prompt, PromptBlock, PromptFlaw
from carrel.client.records import People, Records
from carrel.client.rows import File, FileRow
from carrel.client.runs import Difference, Frozen, Run
from carrel.client.sessions import Session, Sessions
from carrel.client.shelf import Files
from carrel.client.tools import Reply, Tools
from carrel.client.versions import Explanation, Said, Version

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
