"""REST endpoints for the tenant's policy."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import asdict

from carrel.actions.overlay import policy_preview
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import PolicyModel
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, ValidationError
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import Request, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.files import REASON_HEADER, parse_reason

_TAG: Final = "Policy"


class ClassChangeModel(ResponseModel, frozen=True):
    """A path whose file class would change."""

    path: str
    was: FileClass = field(name="from")
    now: FileClass = field(name="to")
    agents: Annotated[int, Meta(ge=0)]
    """Number of agents that have the file, own or inherited."""


class RuleUseModel(ResponseModel, frozen=True):
    """A rule of the policy and the number of paths that it decides."""

    pattern: str
    file_class: FileClass = field(name="class")
    files: Annotated[int, Meta(ge=0)]
    """0 if the rule applies to no existing file."""


class PolicyChange(PolicyModel, frozen=True):
    """A policy to store."""

    confirm: bool = False
    """Pin files although their placeholders will no longer be filled."""


class SavedPolicyModel(PolicyModel, frozen=True):
    """The policy as stored."""

    placeholder_files: tuple[str, ...] | UnsetType = UNSET
    """Files that became pinned and whose placeholders are no longer filled; absent if none."""


class PolicyPreviewModel(ResponseModel, frozen=True):
    """Effect of a policy on file classes."""

    changes: list[ClassChangeModel]
    """At most 500, those that affect most agents first."""
    count: Annotated[int, Meta(ge=0)]
    """Number of all paths that would change."""
    loosens: bool
    """Whether a pinned file would become live, which requires a reason."""
    placeholder_files: list[str]
    """Files whose placeholders would no longer be filled, which requires `confirm`."""
    rules: list[RuleUseModel]
    """All rules of the policy, in order."""


@endpoint(
    "GET", "/v1/policy", permission=Permission.TENANT_READ, responses={200: PolicyModel}, tag=_TAG
)
async def get(request: Request) -> Response:
    """Get the tenant's policy: limits, redaction and retention."""
    return Response.json(await policies.get(request.ports, request.actor))


async def _rebuild_put(request: Request[PolicyChange], versions: tuple[int, ...]) -> Response:
    """The policy that was stored; which files have placeholders is no longer known."""
    fields = asdict(request.body)
    del fields["confirm"]
    stored = policies.normalize_patterns(PolicyModel(**fields))
    return Response.json(SavedPolicyModel(**asdict(stored)))


@endpoint(
    "PUT",
    "/v1/policy",
    permission=Permission.TENANT_ADMIN,
    body=PolicyChange,
    responses={200: SavedPolicyModel},
    refusals=(ValidationError, Conflict, Busy),
    headers=(REASON_HEADER,),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_put,
)
async def put(request: Request[PolicyChange]) -> Response:
    """Replace the policy. Omitted fields take their defaults.

    Files that become pinned are pinned for every agent at their current content. Making a pinned
    file live again requires a reason in `Carrel-Reason`. Pinned files are served verbatim: if a
    file that becomes pinned has placeholders, the change is refused with 409 and
    `details.placeholderFiles`, unless `confirm` is true. If existing paths would differ from a
    pinned or managed one in letter case alone, it is refused with 409 and `details.collidingPaths`.
    A rule that another one before it, or a built-in one, outranks for every path is refused.
    """
    if not request.raw_body:
        raise ValidationError("a policy is required; send {} for an empty one")
    fields = asdict(request.body)
    confirm = fields.pop("confirm")
    saved = await policies.put(
        request.ports,
        request.actor,
        PolicyModel(**fields),
        parse_reason(request),
        confirm=confirm,
        idempotency_key=request.idempotency_key,
    )
    fields = asdict(saved)
    fields["placeholder_files"] = saved.placeholder_files or UNSET
    return Response.json(SavedPolicyModel(**fields))


@endpoint(
    "POST",
    "/v1/policy/preview",
    permission=Permission.TENANT_ADMIN,
    body=PolicyModel,
    responses={200: PolicyPreviewModel},
    refusals=(ValidationError,),
    tag=_TAG,
)
async def preview(request: Request[PolicyModel]) -> Response:
    """Preview which files change class under a policy, and the use of each rule.

    Changes nothing.
    """
    if not request.raw_body:
        raise ValidationError("a policy is required; send {} for an empty one")
    result = await policy_preview.preview_policy(request.ports, request.actor, request.body)
    changes = [
        ClassChangeModel(
            path=change.path.text, was=change.old_class, now=change.new_class, agents=change.agents
        )
        for change in result.changes
    ]
    rules = [
        RuleUseModel(pattern=rule.pattern, file_class=rule.file_class, files=rule.files)
        for rule in result.rules
    ]
    return Response.json(
        PolicyPreviewModel(
            changes=changes,
            count=result.count,
            loosens=result.loosens,
            placeholder_files=[path.text for path in result.placeholder_files],
            rules=rules,
        )
    )


ENDPOINTS: Final = (get, put, preview)
