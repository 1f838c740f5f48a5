"""Mutations that write, delete and restore files."""

from __future__ import annotations

from typing import Any, Final

from ariadne import MutationType

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.core.access import Permission
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.write_condition import parse_condition
from carrel.server.graphql.arguments import ArgumentMap, parse_reason
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.file_types import FileType, WriteResultType
from carrel.server.graphql.files import load_stack

mutation: Final = MutationType()
TYPES: Final = (mutation,)

_ADMIN_TARGETS: Final = frozenset({"template_id", "defaults"})
"""Targets where writes affect other agents."""


async def _load_stack(context: ResolverContext, target: ArgumentMap) -> Stack:
    """Stack of the target; checks permission first, so that nothing is revealed."""
    admin = bool(_ADMIN_TARGETS & target.keys())
    context.begin_mutation(Permission.TENANT_ADMIN if admin else Permission.WORKSPACE_WRITE)
    return await load_stack(context, target)


def _write_options(arguments: ArgumentMap) -> WriteOptions:
    return WriteOptions(
        condition=parse_condition(arguments.get("if_match"), arguments.get("if_none_match")),
        type=arguments.get("content_type"),
        reason=parse_reason(arguments["reason"]),
        run=arguments.get("run_id"),
        accept_template_update=arguments.get("accept_template_update", False),
    )


def _result_to_type(result: files.WriteResult, stack: Stack) -> WriteResultType:
    redacted = result.redacted
    return WriteResultType(
        FileType.from_file(result.file, stack), redacted.warned, redacted.replaced
    )


@mutation.field("putFile")
async def put(
    _: Any, info: Info, place: ArgumentMap, path: str, content: str, **arguments: Any
) -> WriteResultType:
    context = info.context
    stack, options = await _load_stack(context, place), _write_options(arguments)
    try:
        stored = content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    result = await files.put(context.ports, stack, Path(path), stored, context.actor, options)
    return _result_to_type(result, stack)


@mutation.field("deleteFile")
async def delete(_: Any, info: Info, place: ArgumentMap, path: str, **arguments: Any) -> bool:
    context = info.context
    stack = await _load_stack(context, place)
    await files.delete(context.ports, stack, Path(path), context.actor, _write_options(arguments))
    return True


@mutation.field("restoreFile")
async def restore(
    _: Any, info: Info, place: ArgumentMap, path: str, version: int, **arguments: Any
) -> WriteResultType:
    context = info.context
    stack, options = await _load_stack(context, place), _write_options(arguments)
    result = await files.restore(context.ports, stack, Path(path), version, context.actor, options)
    return _result_to_type(result, stack)
