"""REST endpoints of Agent Skills Discovery 0.2: an index of skills and what it refers to."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Meta

from carrel.actions.overlay import stacks
from carrel.actions.overlay.stacks import ReadableStack
from carrel.actions.skills.artifacts import ARCHIVE, SKILL_MD, SkillArtifact, load_artifact
from carrel.actions.skills.skills import find_skill, list_skills
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.skills.skill_definition import SKILL_FILE_NAME
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.not_modified import NO_CACHE, etag_matches, not_modified
from carrel.server.http.response import Response

_TAG: Final = "Skills"
_ROOT: Final = "/.well-known/agent-skills"
_SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
AnyRequest = Request[Any, Any]


class SkillDiscoveryQuery(RequestModel, frozen=True):
    agent_id: (
        Annotated[str, Meta(max_length=256, description="Agent whose skills are listed.")] | None
    ) = None


class DiscoveredSkillModel(ResponseModel, frozen=True):
    name: str
    type: Annotated[str, Meta(description="`skill-md` or `archive`.")]
    description: str
    url: str
    digest: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$", max_length=71)]
    """SHA-256 of what the URL serves."""


class SkillDiscoveryModel(ResponseModel, frozen=True):
    schema_url: str = msgspec.field(name="$schema")
    skills: list[DiscoveredSkillModel]


async def _load_stack(request: AnyRequest) -> ReadableStack:
    """Stack of the agent that the query names, or else of the credential."""
    ports, actor, agent = request.ports, request.actor, request.query.agent_id
    if agent is not None:
        return await stacks.readable_agent_stack(ports, actor, agent)
    return ReadableStack(await stacks.default_stack(ports, actor))


@endpoint(
    "GET",
    f"{_ROOT}/index.json",
    query=SkillDiscoveryQuery,
    allow_unknown_query=True,
    permission=Permission.WORKSPACE_READ,
    responses={200: SkillDiscoveryModel},
    refusals=(NotFound,),
    id="skills_index",
    tag=_TAG,
)
async def get_index(request: Request[None, SkillDiscoveryQuery]) -> Response:
    """Get the index of the valid skills of the caller's workspace, or of an agent.

    Invalid skills, and those of more than 512 files or 16 MiB, are omitted.
    """
    readable = await _load_stack(request)
    skills = await list_skills(
        request.ports, readable.stack, inherited_only=readable.inherited_only
    )
    rows = []
    for skill in skills:
        artifact = await load_artifact(request.ports, skill)
        if artifact is not None:
            description = skill.definition.description
            rows.append(_row(request, skill.name, description, artifact))
    index = SkillDiscoveryModel(schema_url=_SCHEMA, skills=rows)
    response = Response.json(index)
    response.headers.append(NO_CACHE)
    return response


def _row(
    request: AnyRequest, name: str, description: str, artifact: SkillArtifact
) -> DiscoveredSkillModel:
    agent, path = request.query.agent_id, quote(name, safe="")
    suffix = f"/{SKILL_FILE_NAME}" if artifact.kind == SKILL_MD else ".zip"
    query = "" if agent is None else f"?agentId={quote(agent, safe='')}"
    return DiscoveredSkillModel(
        name=name,
        type=artifact.kind,
        description=description,
        url=f"{_ROOT}/{path}{suffix}{query}",
        digest=artifact.digest,
    )


@endpoint(
    "GET",
    f"{_ROOT}/{{name}}/{SKILL_FILE_NAME}",
    query=SkillDiscoveryQuery,
    allow_unknown_query=True,
    permission=Permission.WORKSPACE_READ,
    responses={200: "text/markdown", 304: None},
    refusals=(NotFound,),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    id="skills_skill_md",
    tag=_TAG,
)
async def get_skill_md(request: Request[None, SkillDiscoveryQuery]) -> Response:
    """Get the SKILL.md of a skill that has no other files."""
    return await _artifact_response(request, SKILL_MD)


@endpoint(
    "GET",
    f"{_ROOT}/{{name}}.zip",
    query=SkillDiscoveryQuery,
    allow_unknown_query=True,
    permission=Permission.WORKSPACE_READ,
    responses={200: "application/zip", 304: None},
    refusals=(NotFound,),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    id="skills_archive",
    tag=_TAG,
)
async def get_archive(request: Request[None, SkillDiscoveryQuery]) -> Response:
    """Get a skill with its other files as an archive. Equal skills have equal archives."""
    return await _artifact_response(request, ARCHIVE)


async def _artifact_response(request: AnyRequest, kind: str) -> Response:
    readable, name = await _load_stack(request), request.params["name"]
    skills = await list_skills(
        request.ports, readable.stack, inherited_only=readable.inherited_only
    )
    artifact = await load_artifact(request.ports, find_skill(skills, name))
    if artifact is None or artifact.kind != kind:
        raise NotFound(f"no such skill: {name}")
    etag = f'"{artifact.digest.removeprefix("sha256:")}"'
    if etag_matches(request, etag):
        return not_modified(etag)
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    return Response.content(artifact.content, artifact.media_type, headers=headers)


ENDPOINTS: Final = (get_index, get_skill_md, get_archive)
