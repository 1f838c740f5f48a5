"""Writing, deleting and restoring files of every place."""

from __future__ import annotations

from typing import Any, Final

from ariadne import MutationType

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.core.access import Permission
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.edit import parse_condition
from carrel.server.graphql.arguments import Given, reason_of
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.file_types import File, WriteResult
from carrel.server.graphql.files import stack_at

mutation: Final = MutationType()
TYPES: Final = (mutation,)

_ADMINS: Final = frozenset({"template_id", "defaults"})
"""Places where writing changes other people's agents."""


async def _stack(context: ResolverContext, place: Given) -> Stack:
    """Where is to be written. Permission comes first: a place that is not there tells nothing."""
    admin = bool(_ADMINS & place.keys())
    context.begin(Permission.TENANT_ADMIN if admin else Permission.WORKSPACE_WRITE)
    return await stack_at(context, place)


def _intent(given: Given) -> WriteOptions:
    return WriteOptions(
        condition=parse_condition(given.get("if_match"), given.get("if_none_match")),
        type=given.get("content_type"),
        reason=reason_of(given["reason"]),
        run=given.get("run_id"),
        accept_template_update=given.get("accept_template_update", False),
    )


def _written(written: files.WriteResult, stack: Stack) -> WriteResult:
    redacted = written.redacted
    return WriteResult(File.of(written.file, stack), redacted.warned, redacted.replaced)


@mutation.field("putFile")
async def put(
    _: Any, info: Info, place: Given, path: str, content: str, **given: Any
) -> WriteResult:
    context = info.context
    stack, intent = await _stack(context, place), _intent(given)
    try:
        stored = content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    written = await files.put(context.ports, stack, Path(path), stored, context.actor, intent)
    return _written(written, stack)


@mutation.field("deleteFile")
async def delete(_: Any, info: Info, place: Given, path: str, **given: Any) -> bool:
    context = info.context
    stack = await _stack(context, place)
    await files.delete(context.ports, stack, Path(path), context.actor, _intent(given))
    return True


@mutation.field("restoreFile")
async def restore(
    _: Any, info: Info, place: Given, path: str, version: int, **given: Any
) -> WriteResult:
    context = info.context
    stack, intent = await _stack(context, place), _intent(given)
    written = await files.restore(context.ports, stack, Path(path), version, context.actor, intent)
    return _written(written, stack)
