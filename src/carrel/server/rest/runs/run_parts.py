"""Parts of a run for its start: frozen files, prompt and tools, encoded and cached by content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from carrel.actions.prompt import prompts
from carrel.actions.runs import snapshots
from carrel.core.errors import Conflict, ValidationError
from carrel.core.identifiers import ScopeKind
from carrel.core.runs import Run
from carrel.server.http.endpoint import Request
from carrel.server.http.response_cache import SharedBody
from carrel.server.rest.agents.prompts import load_run_prompt_body, prompt_body_etag
from carrel.server.rest.files.file_models import OverlayFileListModel
from carrel.server.rest.files.files import file_with_content
from carrel.server.rest.files.listing_rows import encode_listing
from carrel.tools.calls import open_tool_context, tools_with_schemas
from carrel.tools.schema_formats import SchemaFormat, describe_tool

AnyRequest = Request[Any, Any]
_LISTING_PREFIX: Final = b'{"files":'


class RunPart(StrEnum):
    FILES = "files"
    PROMPT = "prompt"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class EncodedPart:
    etag: str
    body: bytes | memoryview
    """JSON."""


async def load_parts(
    request: AnyRequest,
    run: Run,
    names: Sequence[RunPart],
    dialect: SchemaFormat,
    *,
    is_current: bool = False,
) -> Mapping[str, EncodedPart]:
    """Load parts of a run.

    `is_current` tells that the snapshot was just taken. Raises ValidationError for tools without an
    agent, and Conflict if the prompt cannot be assembled.
    """
    parts: dict[str, EncodedPart] = {}
    # Erasure replaces content of a snapshot, and raises the current revision.
    revisions = (
        tuple(layer.revision for layer in run.snapshot)
        if is_current
        else await request.ports.trees.revisions([layer.scope for layer in run.snapshot])
    )
    content_key = (prompts.run_content_etag(run), revisions)
    for name in dict.fromkeys(names):
        match name:
            case RunPart.FILES:
                parts[name] = await _load_files(request, run, content_key)
            case RunPart.PROMPT:
                body = await load_run_prompt_body(request, run, content_key)
                parts[name] = EncodedPart(prompt_body_etag(body), body)
            case RunPart.TOOLS:
                parts[name] = await _load_tools(request, run, dialect)
    return parts


def composed_etag(parts: Mapping[str, EncodedPart]) -> str:
    """Quoted ETag of all parts."""
    text = "\0".join(f"{name}{parts[name].etag}" for name in sorted(parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


async def _load_files(
    request: AnyRequest, run: Run, content_key: tuple[str, tuple[int, ...]]
) -> EncodedPart:
    ports = request.ports

    async def build() -> OverlayFileListModel | SharedBody:
        workspace = await snapshots.load_manifest(ports, run)
        contents = await snapshots.read_contents(ports, run, workspace, raw=True)
        if not contents.failed:
            with suppress(Conflict):
                rows = ((file, contents.contents[path]) for path, file in workspace.files.items())
                return encode_listing(request.caches.parts, ports.store, rows, raw=False)
        return OverlayFileListModel(
            files=[file_with_content(file, contents, False) for file in workspace.files.values()]
        )

    key = (ports.store, run.tenant, "run files", *content_key)
    body = await request.caches.responses.get_or_create(key, build)
    return EncodedPart(content_key[0], memoryview(body)[len(_LISTING_PREFIX) : -1])


async def _load_tools(request: AnyRequest, run: Run, dialect: SchemaFormat) -> EncodedPart:
    if run.scope.kind is not ScopeKind.AGENT:
        raise ValidationError("tools can be included only in the run of an agent")
    ports = request.ports
    revision = await ports.records.revision()

    async def build() -> object:
        context = await open_tool_context(ports, request.actor, run.scope.name)
        return [
            dict(describe_tool(tool, dialect, schema))
            for tool, schema in await tools_with_schemas(context)
        ]

    key = (ports.store, run.tenant, "tools", run.scope.name, dialect, revision)
    body = await request.caches.responses.get_or_create(key, build)
    return EncodedPart(f'"{hashlib.sha256(body).hexdigest()[:32]}"', body)
