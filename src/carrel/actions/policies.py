"""A tenant's policy: as it is stored and shown, and changing it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from carrel.actions.records import put_record
from carrel.core.access import Actor
from carrel.core.policy import SHARED, Limits, Policy
from carrel.core.record import Noun, Record
from carrel.core.redaction import ShapeMode
from carrel.ports import World

POLICY_ID = "policy"
GIB = 2**30
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Size = Annotated[int, msgspec.Meta(ge=1, le=GIB)]
Text = Annotated[int, msgspec.Meta(ge=1, le=4 * 2**20)]
"""A file that comes as JSON: escaped it is six times as long, and a body is held in memory."""


class LimitsForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    max_file_bytes: Size = Limits().max_file_bytes
    max_files: Count = Limits().max_files
    max_versions: Count = Limits().max_versions
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=1024 * GIB)] | None = None


_SHARED = LimitsForm(SHARED.max_file_bytes, SHARED.max_files, SHARED.max_versions, SHARED.max_bytes)


class PolicyForm(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    limits: LimitsForm = LimitsForm()
    shared_limits: LimitsForm = _SHARED
    redaction: ShapeMode = ShapeMode.REDACT
    run_retention_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None


def form_of(record: Record | None) -> PolicyForm:
    return msgspec.convert(record.body, PolicyForm) if record else PolicyForm()


def policy_of(record: Record | None) -> Policy:
    form = form_of(record)
    return Policy(
        limits=_limits(form.limits),
        shared_limits=_limits(form.shared_limits),
        redaction=form.redaction,
        run_retention_days=form.run_retention_days,
    )


def _limits(form: LimitsForm) -> Limits:
    return Limits(form.max_file_bytes, form.max_files, form.max_versions, form.max_bytes)


async def get(world: World, actor: Actor) -> PolicyForm:
    [record] = await world.records.get(actor.tenant, Noun.POLICY, [POLICY_ID])
    return form_of(record)


async def put(world: World, actor: Actor, form: PolicyForm) -> PolicyForm:
    body = msgspec.to_builtins(form)
    await put_record(world, actor, Noun.POLICY, POLICY_ID, body, why="change the policy")
    return form
