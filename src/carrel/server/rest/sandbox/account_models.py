"""Models and error format of sandboxes and shared workspaces."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.core import field_validation
from carrel.core.sandbox.account_record import account_from_record
from carrel.core.sandbox.sandbox_config import (
    MAX_LIFECYCLE_SECONDS,
    MAX_MEMORY_MB,
    MAX_OUTPUT_BYTES,
    MAX_TIMEOUT_SECONDS,
    PROVIDERS,
    RUNTIMES,
    VARIABLE_PATTERN,
    mask_secrets,
)
from carrel.core.sandbox.tool_access import PermissionMode, derive_namespace
from carrel.core.sandbox.workspace_config import STORAGE_PROVIDERS
from carrel.core.store.record import Record
from carrel.core.text_validation import MAX_LINE_LENGTH
from carrel.server.http.endpoint import ResponseModel
from carrel.server.http.error_dialect import ErrorDialect, failure_code
from carrel.server.http.error_responses import METHOD_NOT_ALLOWED, Problem
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TEXT: Final = {"type": "string"}
_NAME: Final = {**_TEXT, "minLength": 1, "maxLength": MAX_LINE_LENGTH, "pattern": r"\S"}
_DESCRIPTION: Final = {
    "type": ["string", "null"],
    "maxLength": field_validation.MAX_DESCRIPTION_LENGTH,
}
_FLAG: Final = {"type": "boolean"}
_IMPLIED_METHODS: Final = ("HEAD", "OPTIONS")


def _positive_int(maximum: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": maximum}


_SANDBOX: Final = {
    "provider": {"enum": list(PROVIDERS)},
    "permissionMode": {"enum": [str(mode) for mode in PermissionMode]},
    "internet": _FLAG,
    "network": {"type": "object", "properties": {"mode": {"enum": ["allow-all", "deny-all"]}}},
    "runtimes": {"type": "array", "items": {"enum": list(RUNTIMES)}, "minItems": 1},
    "timeout": _positive_int(MAX_TIMEOUT_SECONDS),
    "memoryLimit": _positive_int(MAX_MEMORY_MB),
    "outputLimitBytes": _positive_int(MAX_OUTPUT_BYTES),
    "envVars": {
        "type": "object",
        "propertyNames": {"pattern": f"^{VARIABLE_PATTERN}$"},
        "additionalProperties": _TEXT,
    },
    "options": {"type": "object"},
    "persistent": _FLAG,
    "lifecycle": {
        "type": "object",
        "properties": {
            name: _positive_int(maximum) for name, maximum in MAX_LIFECYCLE_SECONDS.items()
        },
    },
}
_WORKSPACE: Final = {
    "storage": {"type": "object", "properties": {"provider": {"enum": list(STORAGE_PROVIDERS)}}},
    "harness": {"type": "object", "properties": {"enabled": _FLAG}},
}


def _body(title: str, config: dict[str, Any], *required: str) -> Meta:
    """Schema of a request body; unknown fields are dropped."""
    config_schema = {"type": ["object", "null"], "properties": config}
    schema: dict[str, Any] = {
        "properties": {"name": _NAME, "description": _DESCRIPTION, "config": config_schema}
    }
    if required:
        schema["required"] = list(required)
    description = "Unknown fields are dropped; null means absent."
    if not required:
        description = "Merge patch: null removes a field. Unknown fields are dropped."
    return Meta(title=title, description=description, extra_json_schema=schema)


CreateSandboxBody = Annotated[dict[str, Any], _body("CreateSandboxBody", _SANDBOX, "name")]
UpdateSandboxBody = Annotated[dict[str, Any], _body("UpdateSandboxBody", _SANDBOX)]
CreateSharedWorkspaceBody = Annotated[
    dict[str, Any], _body("CreateSharedWorkspaceBody", _WORKSPACE, "name")
]
UpdateSharedWorkspaceBody = Annotated[
    dict[str, Any], _body("UpdateSharedWorkspaceBody", _WORKSPACE)
]


class SandboxModel(ResponseModel, frozen=True):
    account_id: str
    sandbox_id: str
    name: str
    config: dict[str, Any]
    """Secrets are masked."""
    created_at: Rfc3339
    updated_at: Rfc3339
    description: str | UnsetType = UNSET


class SandboxListModel(ResponseModel, frozen=True):
    sandboxes: list[SandboxModel]


class SharedWorkspaceModel(ResponseModel, frozen=True):
    account_id: str
    workspace_id: str
    namespace: str
    """Name of the workspace at sandbox providers."""
    name: str
    config: dict[str, Any]
    created_at: Rfc3339
    updated_at: Rfc3339
    description: str | UnsetType = UNSET


class SharedWorkspaceListModel(ResponseModel, frozen=True):
    workspaces: list[SharedWorkspaceModel]


class DeletedModel(ResponseModel, frozen=True):
    deleted: bool = True


class AccountErrorModel(ResponseModel, frozen=True):
    error: str
    code: str | UnsetType = UNSET
    """Of an outage, of damage or of a bug."""
    method: str | UnsetType = UNSET
    allowed_methods: list[str] | UnsetType = UNSET


def _format_error(problem: Problem) -> AccountErrorModel:
    details = {} if isinstance(problem.details, UnsetType) else problem.details
    if problem.error == METHOD_NOT_ALLOWED[1]:
        return AccountErrorModel(
            error="Method not allowed",
            method=details["method"],
            allowed_methods=[
                method for method in details["allowedMethods"] if method not in _IMPLIED_METHODS
            ],
        )
    id = details.get("correlationId")
    return AccountErrorModel(
        error=problem.message if id is None else f"{problem.message} ({id})",
        code=failure_code(problem),
    )


ACCOUNT_DIALECT: Final = ErrorDialect([], AccountErrorModel, _format_error)


def sandbox_to_model(record: Record) -> SandboxModel:
    sandbox = account_from_record(record)
    return SandboxModel(
        account_id=record.tenant,
        sandbox_id=record.id,
        name=sandbox.name,
        description=sandbox.description,
        config=mask_secrets(sandbox.config),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


def workspace_to_model(record: Record) -> SharedWorkspaceModel:
    workspace = account_from_record(record)
    return SharedWorkspaceModel(
        account_id=record.tenant,
        workspace_id=record.id,
        namespace=derive_namespace(record.tenant, record.id),
        name=workspace.name,
        description=workspace.description,
        config=dict(workspace.config),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )
