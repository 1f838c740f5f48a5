"""REST endpoints that list the skills of agents, templates, the defaults and workspaces."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.skills.skills import LoadedSkill, list_skills
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.overlay.compose import File
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import Endpoint, Request, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files import skill_discovery
from carrel.server.rest.files.file_collections import FILE_COLLECTIONS, FileCollection
from carrel.server.rest.files.file_models import PositiveInt, Sha256

SkillDigest = Annotated[
    str,
    Meta(
        pattern="^sha256:[0-9a-f]{64}$",
        max_length=71,
        description="SHA-256 over the paths and digests of the skill's files.",
    ),
]


class SkillFileModel(ResponseModel, frozen=True):
    path: str
    """Relative to the folder of the skill."""
    version: PositiveInt
    source: str
    file_class: FileClass = msgspec.field(name="class")
    sha256: Sha256
    size: Annotated[int, Meta(ge=0)]
    update_available: bool


class SkillModel(ResponseModel, frozen=True):
    """A folder `skills/NAME`; one that is invalid is not offered to agents."""

    name: str
    description: str
    valid: bool
    problems: list[str]
    digest: SkillDigest
    files: list[SkillFileModel]


class SkillListModel(ResponseModel, frozen=True):
    items: list[SkillModel]
    next: str | None = None


def skill_to_model(skill: LoadedSkill) -> SkillModel:
    return SkillModel(
        name=skill.name,
        description=skill.definition.description,
        valid=skill.definition.is_valid,
        problems=list(skill.definition.problems),
        digest=skill.folder.digest,
        files=[_file_to_model(path, file) for path, file in skill.folder.files.items()],
    )


def _file_to_model(path: str, file: File) -> SkillFileModel:
    return SkillFileModel(
        path=path,
        version=file.version,
        source=file.source_label or file.source.kind,
        file_class=file.file_class,
        sha256=file.blob.digest.removeprefix("sha256:"),
        size=file.blob.size,
        update_available=file.has_update,
    )


def _list_endpoint(collection: FileCollection) -> Endpoint:
    async def list_all(request: Request[Any, Any]) -> Response:
        """List the skills in order of name, invalid ones with their problems."""
        readable = await collection.load_readable_stack(request)
        skills = await list_skills(
            request.ports, readable.stack, inherited_only=readable.inherited_only
        )
        return Response.json(SkillListModel(items=[skill_to_model(skill) for skill in skills]))

    return endpoint(
        "GET",
        collection.sibling_root("skills"),
        permission=Permission.WORKSPACE_READ,
        responses={200: SkillListModel},
        refusals=(NotFound,),
        id=f"{collection.name}_skills",
        tag=collection.endpoint_options("skills")["tag"],
    )(list_all)


ENDPOINTS: Final = (
    *(_list_endpoint(collection) for collection in FILE_COLLECTIONS),
    *skill_discovery.ENDPOINTS,
)
