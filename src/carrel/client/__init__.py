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
    DeadlineExceeded,
    DirectoryLocked,
    Forbidden,
    Gone,
    IncompleteWorkspace,
    InvalidResponse,
    Malformed,
    Missing,
    NotACarrelDirectory,
    Refusal,
    ResponseTooLarge,
    ServerError,
    ServerUnreachable,
    Stale,
    Taken,
    TooLarge,
    Unauthenticated,
    UnsafePath,
    UnusableWorkspace,
)
from carrel.client.events import CONNECTED, Event
from carrel.client.file_models import File, FileRow
from carrel.client.files import Files
from carrel.client.history import Explanation, LayerEntry, Version
from carrel.client.materialize import MaterializeResult
from carrel.client.memories import Dreams, Memories
from carrel.client.pins import BulkAcceptOutcome, Pin, TemplateFiles
from carrel.client.prompts import Prompt, PromptBlock, PromptFlaw
from carrel.client.records import People, Records
from carrel.client.runs import Difference, Run, RunWorkspace
from carrel.client.sessions import Session, Sessions
from carrel.client.tools import Reply, Tools

__all__ = [
    "CONNECTED",
    "Approvals",
    "AsyncClient",
    "BulkAcceptOutcome",
    "Busy",
    "CarrelError",
    "Client",
    "DeadlineExceeded",
    "Difference",
    "DirectoryLocked",
    "Dreams",
    "Event",
    "Explanation",
    "File",
    "FileRow",
    "Files",
    "Forbidden",
    "Gone",
    "IncompleteWorkspace",
    "InvalidResponse",
    "LayerEntry",
    "Malformed",
    "MaterializeResult",
    "Memories",
    "Missing",
    "NotACarrelDirectory",
    "People",
    "Pin",
    "Prompt",
    "PromptBlock",
    "PromptFlaw",
    "Records",
    "Refusal",
    "Reply",
    "ResponseTooLarge",
    "Run",
    "RunWorkspace",
    "ServerError",
    "ServerUnreachable",
    "Session",
    "Sessions",
    "Stale",
    "Taken",
    "TemplateFiles",
    "TooLarge",
    "Tools",
    "Unauthenticated",
    "UnsafePath",
    "UnusableWorkspace",
    "Version",
    "Workspace",
]
