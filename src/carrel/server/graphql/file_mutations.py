"""Mutations that write, delete, restore and commit files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ariadne import MutationType

from carrel.actions.files import files
from carrel.actions.files.file_commit import CommitOptions, commit_files, require_access
from carrel.actions.files.files import WriteOptions
from carrel.core.access import Permission
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.file_changes import ChangeKind, FileChange, transfer
from carrel.core.overlay.write_condition import parse_condition
from carrel.server.graphql.arguments import ArgumentMap, parse_reason
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.file_types import (
    ChangedFileType,
    CommitResultType,
    FileType,
    WriteResultType,
)
from carrel.server.graphql.files import load_stack
from carrel.server.http.content_encoding import decode_content

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
    stored = decode_content(content, arguments["encoding"])
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


@mutation.field("commitFiles")
async def commit(
    _: Any,
    info: Info,
    place: ArgumentMap,
    writes: Sequence[ArgumentMap],
    reason: str,
    run_id: str | None = None,
) -> CommitResultType:
    context = info.context
    stack = await _load_stack(context, place)
    changes = [_parse_change(index, write) for index, write in enumerate(writes)]
    require_access(context.actor, changes)
    options = CommitOptions(parse_reason(reason), run_id)
    result = await commit_files(context.ports, stack, context.actor, changes, options)
    return CommitResultType(
        result.revision,
        tuple(ChangedFileType.from_result(change, stack) for change in result.changes),
    )


def _parse_change(index: int, write: ArgumentMap) -> FileChange:
    """Parse one change. Raises ValidationError naming it."""
    [(name, fields)] = write.items()
    try:
        return _CHANGE_PARSERS[name](fields)
    except ValidationError as problem:
        raise ValidationError(f"writes[{index}]: {problem}", index=index) from None


def _parse_put(fields: ArgumentMap) -> FileChange:
    return FileChange(
        ChangeKind.PUT,
        Path(fields["path"]),
        content=decode_content(fields["content"], fields["encoding"]),
        type=fields.get("content_type"),
        condition=parse_condition(fields.get("if_match"), fields.get("if_none_match")),
        accept_template_update=fields["accept_template_update"],
    )


def _parse_delete(fields: ArgumentMap) -> FileChange:
    condition = parse_condition(fields.get("if_match"), None)
    path, recursive = Path(fields["path"]), fields["recursive"]
    return FileChange(ChangeKind.DELETE, path, condition=condition, recursive=recursive)


def _parse_transfer(kind: ChangeKind, fields: ArgumentMap) -> FileChange:
    condition = parse_condition(fields.get("if_match"), fields.get("if_none_match"))
    return transfer(
        kind,
        Path(fields["path"]),
        Path(fields["to"]),
        condition,
        accept_template_update=fields["accept_template_update"],
    )


_CHANGE_PARSERS: Final[Mapping[str, Callable[[ArgumentMap], FileChange]]] = {
    "put": _parse_put,
    "delete": _parse_delete,
    "move": partial(_parse_transfer, ChangeKind.MOVE),
    "copy": partial(_parse_transfer, ChangeKind.COPY),
    "make_directory": lambda fields: FileChange(ChangeKind.MAKE_DIRECTORY, Path(fields["path"])),
}
