"""Client of Carrel: agents' files and runs, and a workspace as a directory.

``Client`` blocks, ``AsyncClient`` awaits; both over HTTP. ``carrel.open`` of the server's
distribution gives an AsyncClient over a store in the same process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carrel_client.errors import (
    Busy,
    CapabilityNotProvided,
    CarrelError,
    Conflict,
    CorruptContent,
    DeadlineExceeded,
    DirectoryLocked,
    Expired,
    Forbidden,
    IdempotencyInFlight,
    IdempotencyKeyMismatch,
    IncompleteWorkspace,
    InvalidResponse,
    NotACarrelDirectory,
    NotFound,
    PayloadTooLarge,
    RangeNotSatisfiable,
    Refusal,
    ResponseTooLarge,
    ServerError,
    ServerUnreachable,
    TooManyAttempts,
    TooManyCommands,
    Unauthenticated,
    UnsafePath,
    UnsupportedStreamMode,
    UnusableWorkspace,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel_client.lazy_imports import lazy_attributes

if TYPE_CHECKING:
    from carrel_client.account_records import Sandbox, WorkspaceRecord
    from carrel_client.accounts import (
        AuditEntry,
        AuditKey,
        CreatedKey,
        CreatedTenant,
        Invitation,
        Key,
        Person,
        Secret,
        Tenant,
    )
    from carrel_client.agents import (
        Agent,
        AgentOutcome,
        AgentOutcomes,
        Connection,
        ConnectionSnippet,
        FileEffect,
        Template,
    )
    from carrel_client.approvals import Approval
    from carrel_client.client import AsyncClient, Client
    from carrel_client.comparison import ComparedFile, ComparedPath, ComparedSide, Comparison
    from carrel_client.dry_runs import DryResponse, DryRun
    from carrel_client.event_iterators import AsyncEventStream, EventStream
    from carrel_client.event_reader import CONNECTED, Event
    from carrel_client.file_bytes import DownloadedFile
    from carrel_client.file_changes import (
        ChangedFile,
        CommitResult,
        CopyFile,
        DeleteFile,
        DirectoryEntry,
        FileChange,
        MoveFile,
        PutFile,
    )
    from carrel_client.file_models import File, FileRow, Skill, SkillFile
    from carrel_client.files import Files
    from carrel_client.history import Explanation, LayerEntry, Version, VersionSource
    from carrel_client.items import Item, ItemRow
    from carrel_client.local_directory.materialize import MaterializeResult
    from carrel_client.memories import Dream, Memory
    from carrel_client.models import RecordPage
    from carrel_client.pins import DefaultsStatus, Pin
    from carrel_client.prompts import Prompt, PromptBlock, PromptFlaw
    from carrel_client.provenance import (
        Author,
        FileReview,
        LayerVersion,
        Provenance,
        ProvenanceEntry,
        ProvenanceFile,
        TimeLine,
        TimeLineItem,
        VersionReader,
        VersionReaders,
    )
    from carrel_client.reviews import (
        BulkAcceptOutcome,
        BulkReview,
        MergeProposal,
        PinnedVersions,
        Review,
    )
    from carrel_client.run_parts import RunParts
    from carrel_client.runs import Difference, Heartbeat, Run, RunEventPage, RunWorkspace
    from carrel_client.runtimes.agent_run import AgentRun, RunTool, agent_run
    from carrel_client.search import Inbox, SearchHit, SearchResult
    from carrel_client.sessions import Entry, NewEntry, Session
    from carrel_client.tools import ToolReply
    from carrel_client.webhooks import Delivery, EventType, Webhook
    from carrel_client.workspaces import AgentWorkspace, Workspace

_MODULES: Final = {
    "account_records": ("Sandbox", "WorkspaceRecord"),
    "accounts": (
        *("AuditEntry", "AuditKey", "CreatedKey", "CreatedTenant", "Invitation", "Key"),
        *("Person", "Secret", "Tenant"),
    ),
    "runtimes.agent_run": ("AgentRun", "RunTool", "agent_run"),
    "agents": (
        "Agent",
        "AgentOutcome",
        "AgentOutcomes",
        "FileEffect",
        "Connection",
        "ConnectionSnippet",
        "Template",
    ),
    "approvals": ("Approval",),
    "client": ("AsyncClient", "Client"),
    "comparison": ("ComparedFile", "ComparedPath", "ComparedSide", "Comparison"),
    "dry_runs": ("DryResponse", "DryRun"),
    "event_iterators": ("AsyncEventStream", "EventStream"),
    "event_reader": ("CONNECTED", "Event"),
    "file_changes": (
        *("ChangedFile", "CommitResult", "CopyFile", "DeleteFile", "DirectoryEntry", "FileChange"),
        *("MoveFile", "PutFile"),
    ),
    "file_bytes": ("DownloadedFile",),
    "file_models": ("File", "FileRow", "Skill", "SkillFile"),
    "files": ("Files",),
    "history": ("Explanation", "LayerEntry", "Version", "VersionSource"),
    "items": ("Item", "ItemRow"),
    "local_directory.materialize": ("MaterializeResult",),
    "memories": ("Dream", "Memory"),
    "models": ("RecordPage",),
    "pins": ("DefaultsStatus", "Pin"),
    "reviews": ("BulkAcceptOutcome", "BulkReview", "MergeProposal", "PinnedVersions", "Review"),
    "prompts": ("Prompt", "PromptBlock", "PromptFlaw"),
    "provenance": (
        *("Author", "FileReview", "LayerVersion", "Provenance", "ProvenanceEntry"),
        *("ProvenanceFile", "TimeLine", "TimeLineItem", "VersionReader", "VersionReaders"),
    ),
    "run_parts": ("RunParts",),
    "runs": ("Difference", "Heartbeat", "Run", "RunEventPage", "RunWorkspace"),
    "search": ("Inbox", "SearchHit", "SearchResult"),
    "sessions": ("Entry", "NewEntry", "Session"),
    "tools": ("ToolReply",),
    "webhooks": ("Delivery", "EventType", "Webhook"),
    "workspaces": ("AgentWorkspace", "Workspace"),
}
_LAZY: Final = {name: module for module, names in _MODULES.items() for name in names}
"""Imported on first access: catching an error must not import httpx."""

__all__ = [
    "CONNECTED",
    "Agent",
    "AgentOutcome",
    "AgentOutcomes",
    "AgentRun",
    "AgentWorkspace",
    "Approval",
    "AsyncClient",
    "AsyncEventStream",
    "AuditEntry",
    "AuditKey",
    "Author",
    "BulkAcceptOutcome",
    "BulkReview",
    "Busy",
    "CapabilityNotProvided",
    "CarrelError",
    "ChangedFile",
    "Client",
    "CommitResult",
    "ComparedFile",
    "ComparedPath",
    "ComparedSide",
    "Comparison",
    "Conflict",
    "Connection",
    "ConnectionSnippet",
    "CopyFile",
    "CorruptContent",
    "CreatedKey",
    "CreatedTenant",
    "DeadlineExceeded",
    "DefaultsStatus",
    "DeleteFile",
    "Delivery",
    "Difference",
    "DirectoryEntry",
    "DirectoryLocked",
    "DownloadedFile",
    "Dream",
    "DryResponse",
    "DryRun",
    "Entry",
    "Event",
    "EventStream",
    "EventType",
    "Expired",
    "Explanation",
    "File",
    "FileChange",
    "FileEffect",
    "FileReview",
    "FileRow",
    "Files",
    "Forbidden",
    "Heartbeat",
    "IdempotencyInFlight",
    "IdempotencyKeyMismatch",
    "Inbox",
    "IncompleteWorkspace",
    "InvalidResponse",
    "Invitation",
    "Item",
    "ItemRow",
    "Key",
    "LayerEntry",
    "LayerVersion",
    "MaterializeResult",
    "Memory",
    "MergeProposal",
    "MoveFile",
    "NewEntry",
    "NotACarrelDirectory",
    "NotFound",
    "PayloadTooLarge",
    "Person",
    "Pin",
    "PinnedVersions",
    "Prompt",
    "PromptBlock",
    "PromptFlaw",
    "Provenance",
    "ProvenanceEntry",
    "ProvenanceFile",
    "PutFile",
    "RangeNotSatisfiable",
    "RecordPage",
    "Refusal",
    "ResponseTooLarge",
    "Review",
    "Run",
    "RunEventPage",
    "RunParts",
    "RunTool",
    "RunWorkspace",
    "Sandbox",
    "SearchHit",
    "SearchResult",
    "Secret",
    "ServerError",
    "ServerUnreachable",
    "Session",
    "Skill",
    "SkillFile",
    "Template",
    "Tenant",
    "TimeLine",
    "TimeLineItem",
    "TooManyAttempts",
    "TooManyCommands",
    "ToolReply",
    "Unauthenticated",
    "UnsafePath",
    "UnsupportedStreamMode",
    "UnusableWorkspace",
    "ValidationError",
    "Version",
    "VersionReader",
    "VersionReaders",
    "VersionSource",
    "Webhook",
    "Workspace",
    "WorkspaceConflict",
    "WorkspaceRecord",
    "WorkspaceTooLarge",
    "agent_run",
]

__getattr__ = lazy_attributes(__name__, _LAZY)
