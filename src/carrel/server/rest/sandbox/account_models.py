"""Sandboxes and shared workspaces of an account as they go over the wire, and how they say no."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.core import field_validation
from carrel.core.sandbox.sandbox_config import (
    LARGEST_MEMORY,
    LARGEST_OUTPUT,
    LONGEST,
    LONGEST_RUN,
    PROVIDERS,
    RUNTIMES,
    VARIABLE,
    masked,
)
from carrel.core.sandbox.tool_access import PermissionMode, namespace
from carrel.core.sandbox.workspace_config import STORAGES
from carrel.core.store.record import Record
from carrel.core.text_validation import LONGEST_LINE
from carrel.server.http.endpoint import ResponseModel
from carrel.server.http.error_dialect import ErrorDialect
from carrel.server.http.problems import WRONG_METHOD, Problem
from carrel.server.rest.files.file_models import When, rfc3339

_TEXT: Final = {"type": "string"}
_NAME: Final = {**_TEXT, "minLength": 1, "maxLength": LONGEST_LINE, "pattern": r"\S"}
_ABOUT: Final = {"type": ["string", "null"], "maxLength": field_validation.LONGEST_DESCRIPTION}
_FLAG: Final = {"type": "boolean"}
_IMPLIED: Final = ("HEAD", "OPTIONS")


def _whole(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


_SANDBOX: Final = {
    "provider": {"enum": list(PROVIDERS)},
    "permissionMode": {"enum": [str(mode) for mode in PermissionMode]},
    "internet": _FLAG,
    "network": {"type": "object", "properties": {"mode": {"enum": ["allow-all", "deny-all"]}}},
    "runtimes": {"type": "array", "items": {"enum": list(RUNTIMES)}, "minItems": 1},
    "timeout": _whole(LONGEST_RUN),
    "memoryLimit": _whole(LARGEST_MEMORY),
    "outputLimitBytes": _whole(LARGEST_OUTPUT),
    "envVars": {
        "type": "object",
        "propertyNames": {"pattern": f"^{VARIABLE}$"},
        "additionalProperties": _TEXT,
    },
    "options": {"type": "object"},
    "persistent": _FLAG,
    "lifecycle": {
        "type": "object",
        "properties": {name: _whole(most) for name, most in LONGEST.items()},
    },
}
_WORKSPACE: Final = {
    "storage": {"type": "object", "properties": {"provider": {"enum": list(STORAGES)}}},
    "harness": {"type": "object", "properties": {"enabled": _FLAG}},
}


def _body(title: str, config: dict[str, Any], *required: str) -> Meta:
    """What is not known is dropped."""
    shape = {"type": ["object", "null"], "properties": config}
    told: dict[str, Any] = {"properties": {"name": _NAME, "description": _ABOUT, "config": shape}}
    if required:
        told["required"] = list(required)
    about = "Fields that are not known are dropped; null is as good as nothing said."
    if not required:
        about = "A merge-patch: null takes away. Fields that are not known are dropped."
    return Meta(title=title, description=about, extra_json_schema=told)


NewSandbox = Annotated[dict[str, Any], _body("NewSandbox", _SANDBOX, "name")]
SandboxPatch = Annotated[dict[str, Any], _body("SandboxPatch", _SANDBOX)]
NewWorkspace = Annotated[dict[str, Any], _body("NewWorkspace", _WORKSPACE, "name")]
WorkspacePatch = Annotated[dict[str, Any], _body("WorkspacePatch", _WORKSPACE)]


class SandboxRecord(ResponseModel, frozen=True):
    account_id: str
    sandbox_id: str
    name: str
    config: dict[str, Any]
    """Secrets in it are masked."""
    created_at: When
    updated_at: When
    description: str | UnsetType = UNSET


class SandboxRecords(ResponseModel, frozen=True):
    sandboxes: list[SandboxRecord]


class WorkspaceRecord(ResponseModel, frozen=True):
    account_id: str
    workspace_id: str
    namespace: str
    """What it is called outside, whoever looks at it."""
    name: str
    config: dict[str, Any]
    created_at: When
    updated_at: When
    description: str | UnsetType = UNSET


class WorkspaceRecords(ResponseModel, frozen=True):
    workspaces: list[WorkspaceRecord]


class Deleted(ResponseModel, frozen=True):
    deleted: bool = True


class AccountRefusal(ResponseModel, frozen=True):
    error: str
    method: str | UnsetType = UNSET
    allowed_methods: list[str] | UnsetType = UNSET


def _refused(problem: Problem) -> AccountRefusal:
    details = {} if isinstance(problem.details, UnsetType) else problem.details
    if problem.error == WRONG_METHOD[1]:
        return AccountRefusal(
            error="Method not allowed",
            method=details["method"],
            allowed_methods=[each for each in details["allowedMethods"] if each not in _IMPLIED],
        )
    id = details.get("correlationId")
    return AccountRefusal(error=problem.message if id is None else f"{problem.message} ({id})")


MANNER: Final = ErrorDialect([], AccountRefusal, _refused)


def sandbox_record(record: Record) -> SandboxRecord:
    return SandboxRecord(
        account_id=record.tenant,
        sandbox_id=record.id,
        name=record.body["name"],
        description=record.body.get("description", UNSET),
        config=masked(record.body["config"]),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


def workspace_record(record: Record) -> WorkspaceRecord:
    return WorkspaceRecord(
        account_id=record.tenant,
        workspace_id=record.id,
        namespace=namespace(record.tenant, record.id),
        name=record.body["name"],
        description=record.body.get("description", UNSET),
        config=dict(record.body["config"]),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )
