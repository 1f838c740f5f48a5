"""Request body, responses and error format of the overlay API."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from carrel.actions.files.files import render_content
from carrel.core.agents.identity_fields import EDITABLE_FIELDS
from carrel.core.errors import Conflict, Unauthenticated
from carrel.core.identifiers import Digest, digest
from carrel.core.overlay.agent_resolution import FileSource
from carrel.core.overlay.compose import File
from carrel.server.http.endpoint import ResponseModel
from carrel.server.http.error_dialect import ErrorDialect, failure_code
from carrel.server.http.error_responses import Problem
from carrel.server.rest.files.file_models import decode_text

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_ACTIONS: Final = ("list", "get", "put", "delete", "regenerate-map", "update-identity-field")

OverlayRequestBody = Annotated[
    dict[str, Any],
    Meta(
        title="OverlayRequest",
        description=(
            "Exactly one of `agentId`, `templateId` and `defaults`. Fields that name a tenant are "
            "refused; unknown fields are ignored."
        ),
        extra_json_schema={
            "properties": {
                "action": {"enum": list(_ACTIONS)},
                "agentId": _TEXT,
                "templateId": _TEXT,
                "defaults": _FLAG,
                "path": _TEXT,
                "content": _TEXT,
                "acceptTemplateUpdate": _FLAG,
                "includeContent": _FLAG,
                "raw": {**_FLAG, "description": "Return unrendered text."},
                "baseSha256": {
                    **_TEXT,
                    "description": "Put only if the stored content has this digest.",
                },
                "ifSource": {**_TEXT, "description": "Put only if the file has this source."},
                "field": {"enum": list(EDITABLE_FIELDS)},
                "value": _TEXT,
                "tenantId": False,
                "tenantSlug": False,
                "instanceId": False,
            },
            "required": ["action"],
        },
    ),
]


class OverlayFileRowModel(ResponseModel, frozen=True):
    path: str
    source: str
    sha256: str
    """Digest of the stored bytes."""
    overridden: bool
    rendered_sha256: str | UnsetType = UNSET
    """Digest of the served bytes."""
    content: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    """Why this file could not be read; other files are unaffected."""


class OverlayResponseModel(ResponseModel, frozen=True):
    """`files` for list; content, source and digests for get; only `ok` for writes."""

    ok: bool = True
    content: str | UnsetType | None = UNSET
    source: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    rendered_sha256: str | UnsetType = UNSET
    files: list[OverlayFileRowModel] | UnsetType = UNSET


class OverlayErrorModel(ResponseModel, frozen=True):
    error: str
    ok: bool = False
    code: str | UnsetType = UNSET
    """Of an outage, of damage or of a bug."""


OK_RESPONSE: Final = OverlayResponseModel()
_OVERRIDE_SOURCES: Final = frozenset({FileSource.OVERRIDE, FileSource.PINNED_OVERRIDE})


def source_of(file: File) -> str:
    return file.source_label or file.source.kind


def hex_digest(digest: Digest) -> str:
    return digest.removeprefix("sha256:")


def file_to_response(file: File, stored: bytes, *, raw: bool) -> OverlayResponseModel:
    """One file with its content. Raises Conflict if it is not text."""
    rendered = render_content(file, stored)
    return OverlayResponseModel(
        content=decode_text(file, stored if raw else rendered),
        source=source_of(file),
        sha256=hex_digest(file.blob.digest),
        rendered_sha256=hex_digest(digest(rendered)),
    )


def file_to_row(file: File, stored: bytes | None = None) -> OverlayFileRowModel:
    """Row of one file; its rendered digest only if it can be computed."""
    rendered_sha256: str | UnsetType = UNSET
    if stored is not None:
        rendered_sha256 = hex_digest(digest(render_content(file, stored)))
    elif file.variables is None:
        rendered_sha256 = hex_digest(file.blob.digest)
    return OverlayFileRowModel(
        path=file.path.text,
        source=source_of(file),
        sha256=hex_digest(file.blob.digest),
        rendered_sha256=rendered_sha256,
        overridden=file.source_label in _OVERRIDE_SOURCES,
    )


def file_to_row_with_content(file: File, stored: bytes, *, raw: bool) -> OverlayFileRowModel:
    try:
        content = decode_text(file, stored if raw else render_content(file, stored))
    except Conflict as error:
        return replace(file_to_row(file, stored), error=str(error))
    return replace(file_to_row(file, stored), content=content)


def unreadable_file_to_row(file: File, reason: str) -> OverlayFileRowModel:
    return replace(
        file_to_row(file), error=f"{file.path} cannot be read: {reason}", rendered_sha256=UNSET
    )


def _format_error(problem: Problem) -> OverlayErrorModel:
    details = {} if isinstance(problem.details, UnsetType) else problem.details
    message, id = problem.message, details.get("correlationId")
    if problem.error == Unauthenticated.code:
        message = f"Unauthorized: {message}"
    return OverlayErrorModel(
        error=message if id is None else f"{message} ({id})", code=failure_code(problem)
    )


_CORS: Final = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST, OPTIONS",
    "access-control-allow-headers": (
        "Content-Type, Authorization, x-api-key, x-tenant-id, x-principal-id, If-None-Match"
    ),
    "access-control-expose-headers": "ETag",
    "access-control-max-age": "3600",
}
OVERLAY_DIALECT: Final = ErrorDialect(
    [(name.encode("ascii"), value.encode("ascii")) for name, value in _CORS.items()],
    OverlayErrorModel,
    _format_error,
)
