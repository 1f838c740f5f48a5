"""JSON Schemas of RFC 0059, with additional properties refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core.identifiers import ScopeKind
from carrel.core.store.entry import MARKDOWN
from carrel.core.store.event import EVENT_TYPES
from carrel.server.rest.files.file_models import WIRE_PATTERN

Json = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ROOT: Final = "/schemas/"

_COUNT: Final = {"type": "integer", "minimum": 1}
_TIME: Final = {"type": "string", "format": "date-time"}
_NAME: Final = {"type": "string", "minLength": 1}
_PATH: Final = {
    "type": "string",
    "pattern": WIRE_PATTERN,
    "description": "Relative to the workspace. No `..`, no leading `/`.",
}


def _closed_object_schema(title: str, properties: Json, required: list[str]) -> Json:
    return {
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }


_CONTENT: Final = {"type": "string", "description": "The file's body, as UTF-8."}
_TYPE: Final = {"type": "string", "default": MARKDOWN}

_FILE: Final = _closed_object_schema(
    "WorkspaceFile",
    {
        "path": _PATH,
        "content": _CONTENT,
        "contentType": _TYPE,
        "version": _COUNT,
        "etag": {"type": "string", "description": "Opaque, including quotes; for If-Match."},
        "updatedAt": _TIME,
    },
    ["path", "content", "version", "updatedAt"],
)
_FILE_CREATE: Final = _closed_object_schema(
    "WorkspaceFileCreate", {"content": _CONTENT, "contentType": _TYPE}, ["content"]
)
_CAPABILITY: Final = _closed_object_schema(
    "WorkspaceCapability",
    {
        "supported": {"type": "boolean"},
        "versioned": {
            "type": "boolean",
            "description": "Every write creates a version; earlier versions can be read.",
        },
        "maxFileBytes": {
            **_COUNT,
            "description": "Larger files are refused with `workspace_too_large`.",
        },
        "maxFiles": {**_COUNT, "description": "Maximum files per workspace."},
        "maxVersions": {**_COUNT, "description": "Number of earlier versions kept."},
    },
    ["supported"],
)
_UPDATED: Final = _closed_object_schema(
    "WorkspaceUpdated",
    {
        "path": {**_NAME, "description": "May be outside the path pattern of this protocol."},
        "version": {**_COUNT, "description": "For a deletion, the version of the tombstone."},
    },
    ["path", "version"],
)
_RUN_EVENT: Final = _closed_object_schema(
    "RunEvent",
    {
        "eventId": _NAME,
        "runId": _NAME,
        "type": {"type": "string", "enum": list(EVENT_TYPES)},
        "payload": {"type": "object"},
        "timestamp": _TIME,
        "sequence": {**_COUNT, "description": "Position in the run's log."},
    },
    ["eventId", "runId", "type", "payload", "timestamp", "sequence"],
)
_ERROR: Final = _closed_object_schema(
    "ErrorEnvelope",
    {
        "error": {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"},
        "message": _NAME,
        "details": {"type": "object"},
    },
    ["error", "message"],
)
WORKSPACE: Final = _closed_object_schema(
    "Workspace",
    {
        "kind": {"type": "string", "enum": [kind.value for kind in ScopeKind]},
        "name": {"type": "string"},
    },
    ["kind", "name"],
)

BODIES: Final[Mapping[str, Json]] = {
    "workspace-file": _FILE,
    "workspace-file-create": _FILE_CREATE,
    "workspace-capability": _CAPABILITY,
    "workspace-updated": _UPDATED,
    "run-event": _RUN_EVENT,
    "error-envelope": _ERROR,
}

SCHEMAS: Final[Mapping[str, Json]] = {
    f"{name}.schema.json": {"$schema": DIALECT, "$id": f"{ROOT}{name}.schema.json", **body}
    for name, body in BODIES.items()
}
"""Schemas by file name."""
