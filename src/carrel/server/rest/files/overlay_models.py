"""The overlay endpoint's bodies: what is asked, what is told, and how it says no."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from carrel.actions.files.files import render_content
from carrel.core.agents.identity_fields import FIELDS
from carrel.core.errors import Conflict, Unauthenticated
from carrel.core.identifiers import Digest, digest
from carrel.core.overlay.agent_files import FileSource
from carrel.core.overlay.compose import File
from carrel.server.http.endpoint import ResponseModel
from carrel.server.http.error_dialect import ErrorDialect
from carrel.server.http.problems import Problem
from carrel.server.rest.files.file_models import text_of

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_ACTIONS: Final = ("list", "get", "put", "delete", "regenerate-map", "update-identity-field")

Body = Annotated[
    dict[str, Any],
    Meta(
        title="OverlayRequest",
        description=(
            "Exactly one of `agentId`, `templateId` and `defaults`. Fields that name a tenant are "
            "refused; those that are not known are left alone."
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
                "raw": {**_FLAG, "description": "With placeholders as they stand."},
                "baseSha256": {**_TEXT, "description": "Put only if the stored bytes are these."},
                "ifSource": {**_TEXT, "description": "Put only if the file comes from there."},
                "field": {"enum": list(FIELDS)},
                "value": _TEXT,
                "tenantId": False,
                "tenantSlug": False,
                "instanceId": False,
            },
            "required": ["action"],
        },
    ),
]


class OverlayRow(ResponseModel, frozen=True):
    path: str
    source: str
    sha256: str
    """Of the bytes as they are stored."""
    overridden: bool
    rendered_sha256: str | UnsetType = UNSET
    """Of what is served."""
    content: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    """Why this one could not be had; the others are not touched by that."""


class OverlayAnswer(ResponseModel, frozen=True):
    """`files` where they were listed; the others but `ok` where one was read."""

    ok: bool = True
    content: str | UnsetType | None = UNSET
    source: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    rendered_sha256: str | UnsetType = UNSET
    files: list[OverlayRow] | UnsetType = UNSET


class OverlayRefusal(ResponseModel, frozen=True):
    error: str
    ok: bool = False


DONE: Final = OverlayAnswer()
_OVERRIDES: Final = frozenset({FileSource.OVERRIDE, FileSource.PINNED_OVERRIDE})


def source_of(file: File) -> str:
    return file.origin or file.source.kind


def bare(digest: Digest) -> str:
    return digest.removeprefix("sha256:")


def content_of(file: File, stored: bytes, *, raw: bool) -> OverlayAnswer:
    """One file with its content. Raises Taken where that is no text."""
    shown = render_content(file, stored)
    return OverlayAnswer(
        content=text_of(file, stored if raw else shown),
        source=source_of(file),
        sha256=bare(file.blob.digest),
        rendered_sha256=bare(digest(shown)),
    )


def row(file: File, stored: bytes | None = None) -> OverlayRow:
    """One file of a list, its hash as it is served where that can be told."""
    told: str | UnsetType = UNSET
    if stored is not None:
        told = bare(digest(render_content(file, stored)))
    elif file.variables is None:
        told = bare(file.blob.digest)
    return OverlayRow(
        path=file.path.text,
        source=source_of(file),
        sha256=bare(file.blob.digest),
        rendered_sha256=told,
        overridden=file.origin in _OVERRIDES,
    )


def row_with_content(file: File, stored: bytes, *, raw: bool) -> OverlayRow:
    try:
        content = text_of(file, stored if raw else render_content(file, stored))
    except Conflict as problem:
        return replace(row(file, stored), error=str(problem))
    return replace(row(file, stored), content=content)


def failed_row(file: File, reason: str) -> OverlayRow:
    return replace(row(file), error=f"{file.path} cannot be read: {reason}", rendered_sha256=UNSET)


def _refused(problem: Problem) -> OverlayRefusal:
    details = {} if isinstance(problem.details, UnsetType) else problem.details
    said, id = problem.message, details.get("correlationId")
    if problem.error == Unauthenticated.code:
        said = f"Unauthorized: {said}"
    return OverlayRefusal(error=said if id is None else f"{said} ({id})")


_CORS: Final = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "POST, OPTIONS",
    "access-control-allow-headers": (
        "Content-Type, Authorization, x-api-key, x-tenant-id, x-principal-id, If-None-Match"
    ),
    "access-control-expose-headers": "ETag",
    "access-control-max-age": "3600",
}
MANNER: Final = ErrorDialect(
    [(name.encode("ascii"), value.encode("ascii")) for name, value in _CORS.items()],
    OverlayRefusal,
    _refused,
)
