"""Tool `memory`: reads and changes the files that the agent itself may write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from carrel.actions.memory import own_files
from carrel.actions.memory.own_files import ChangedText, OwnFiles
from carrel.core.errors import NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.memory.memory_paths import ROOT, MemoryPath, parse_memory_path
from carrel.core.memory.memory_texts import (
    format_directory,
    insert_text,
    list_directory,
    make_snippet,
    replace_once,
    view_lines,
)
from carrel.core.overlay.compose import File
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolReply, ToolResultFields
from carrel.tools.workspace_tool import encode_utf8, with_redaction_note


class MemoryCommand(StrEnum):
    VIEW = "view"
    CREATE = "create"
    STR_REPLACE = "str_replace"
    INSERT = "insert"
    DELETE = "delete"
    RENAME = "rename"


class MemoryArguments(ToolArguments, frozen=True):
    command: Annotated[
        MemoryCommand,
        Meta(
            description="view a file or directory, create a new file, str_replace or insert text "
            "in a file, delete or rename a file or directory."
        ),
    ]
    path: Annotated[
        str | UnsetType, Meta(description="File or directory below /memories; not for rename.")
    ] = UNSET
    view_range: Annotated[
        Annotated[list[int], Meta(min_length=2, max_length=2)] | UnsetType,
        Meta(description="For view: first and last line, starting at 1; -1 is the last line."),
    ] = UNSET
    file_text: Annotated[
        str | UnsetType, Meta(description="For create: content of the new file.")
    ] = UNSET
    old_str: Annotated[
        str | UnsetType, Meta(description="For str_replace: exact text, which must occur once.")
    ] = UNSET
    new_str: Annotated[str, Meta(description="For str_replace: its replacement.")] = ""
    insert_line: Annotated[
        int | UnsetType,
        Meta(description="For insert: line after which to insert; 0 inserts at the beginning."),
    ] = UNSET
    insert_text: Annotated[str | UnsetType, Meta(description="For insert: text to insert.")] = UNSET
    old_path: Annotated[str | UnsetType, Meta(description="For rename: current path.")] = UNSET
    new_path: Annotated[
        str | UnsetType, Meta(description="For rename: new path, which must be free.")
    ] = UNSET


_REQUIRED: Final[Mapping[MemoryCommand, tuple[str, ...]]] = {
    MemoryCommand.VIEW: ("path",),
    MemoryCommand.CREATE: ("path", "file_text"),
    MemoryCommand.STR_REPLACE: ("path", "old_str"),
    MemoryCommand.INSERT: ("path", "insert_line", "insert_text"),
    MemoryCommand.DELETE: ("path",),
    MemoryCommand.RENAME: ("old_path", "new_path"),
}


class MemoryCall(Struct, frozen=True):
    """A checked call and the files it uses."""

    own: OwnFiles
    args: MemoryArguments

    def parse(self, text: str | UnsetType) -> MemoryPath:
        assert text is not UNSET
        return parse_memory_path(text, self.own.writable)

    def parse_file(self) -> tuple[str, Path]:
        """Path that must not be the root, as the call names it and as it is."""
        parsed = self.parse(self.args.path)
        if parsed.path is None:
            raise ValidationError(f"The path {parsed.text} is not a file.")
        return parsed.text, parsed.path

    def reason(self, path: Path) -> str:
        return f"memory {self.args.command}: {path}"


class MemoryDirectoryEntry(ToolResultFields, frozen=True):
    path: str
    size: int


class MemoryResult(ToolResultFields, frozen=True, rename="camel"):
    path: str
    type: Literal["file", "directory"] | UnsetType = UNSET
    """Absent after delete and rename."""
    version: int | UnsetType = UNSET
    lines: int | UnsetType = UNSET
    """Of the whole file."""
    first_line: int | UnsetType = UNSET
    last_line: int | UnsetType = UNSET
    entries: tuple[MemoryDirectoryEntry, ...] | UnsetType = UNSET
    redacted: tuple[str, ...] | UnsetType = UNSET
    old_path: str | UnsetType = UNSET


async def _run(context: ToolContext, args: MemoryArguments) -> ToolReply:
    for name, value in asdict(args).items():
        if isinstance(value, str) and b"\0" in encode_utf8(name, value):
            raise ValidationError(f"{name} must not contain NUL")
    for name in _REQUIRED[args.command]:
        if getattr(args, name) is UNSET:
            raise ValidationError(f"the command {args.command} needs {name}")
    run = context.run.id if context.run else None
    own = await own_files.open_own_files(context.ports, context.actor, context.stack, run)
    return await _COMMANDS[args.command](MemoryCall(own, args))


async def _view(call: MemoryCall) -> ToolReply:
    parsed = call.parse(call.args.path)
    if parsed.path is not None:
        file = await own_files.find_own_file(call.own, parsed.path)
        if file is not None:
            return await _view_file(call, parsed.text, file)
    directory = await own_files.list_own_files(call.own, parsed.path)
    if parsed.path is not None and not directory.exists:
        raise _not_found(parsed.text)
    length = len(parsed.path.text) + 1 if parsed.path else 0
    sizes = {path.text[length:]: file.blob.size for path, file in directory.files.items()}
    listed = list_directory(
        sizes, [path.text[length:] for path in directory.directories if path != parsed.path]
    )
    text = format_directory(parsed.text, listed, sum(sizes.values()))
    entries = [{"path": f"{parsed.text}/{item.path}", "size": item.size} for item in listed]
    structured = {"path": parsed.text, "type": "directory", "entries": entries}
    return ToolReply(text, structured=structured)


async def _view_file(call: MemoryCall, name: str, file: File) -> ToolReply:
    text, view_range = await own_files.read_own_text(call.own, file), call.args.view_range
    view = await asyncio.to_thread(
        view_lines, name, text, None if view_range is UNSET else view_range
    )
    structured = {
        **{"path": name, "type": "file", "version": file.version, "lines": view.lines},
        **{"firstLine": view.first, "lastLine": view.last},
    }
    return ToolReply(view.text, structured=structured)


async def _create(call: MemoryCall) -> ToolReply:
    parsed, text = call.parse(call.args.path), call.args.file_text
    assert text is not UNSET
    name, path = parsed.text, parsed.path
    if path is None or (await own_files.list_own_files(call.own, path)).exists:
        raise _already_exists(name)
    try:
        changed = await own_files.create_own_file(call.own, path, text, call.reason(path))
    except WorkspaceConflict:
        raise _already_exists(name) from None
    return _changed_reply(name, f"File created successfully at: {name}", changed)


async def _replace(call: MemoryCall) -> ToolReply:
    (name, path), old, line = call.parse_file(), call.args.old_str, 0
    assert old is not UNSET

    def change_text(text: str) -> str:
        nonlocal line
        changed, line = replace_once(name, text, old, call.args.new_str)
        return changed

    changed = await _edit(call, name, path, change_text)
    edited = "The memory file has been edited. Here is the snippet showing the change (with line"
    text = f"{edited} numbers):\n{make_snippet(changed.text, line)}"
    return _changed_reply(name, text, changed)


async def _insert(call: MemoryCall) -> ToolReply:
    (name, path), line, new = call.parse_file(), call.args.insert_line, call.args.insert_text
    assert line is not UNSET and new is not UNSET
    changed = await _edit(call, name, path, lambda text: insert_text(text, line, new))
    return _changed_reply(name, f"The file {name} has been edited.", changed)


async def _edit(
    call: MemoryCall, name: str, path: Path, change_text: Callable[[str], str]
) -> ChangedText:
    """Edit a file. Raises NotFound with its name, ValidationError for a directory."""
    if await own_files.find_own_file(call.own, path) is None:
        if (await own_files.list_own_files(call.own, path)).exists:
            raise ValidationError(f"The path {name} is not a file.")
        raise _not_found(name)
    return await own_files.edit_own_file(call.own, path, change_text, call.reason(path))


async def _delete(call: MemoryCall) -> ToolReply:
    parsed = call.parse(call.args.path)
    if parsed.path is None:
        raise ValidationError(f"Cannot delete the {ROOT} directory itself")
    if not await _exists(call, parsed.path):
        raise NotFound(f"The path {parsed.text} does not exist")
    try:
        await own_files.delete_own(call.own, parsed.path, call.reason(parsed.path))
    except NotFound:
        if not await _exists(call, parsed.path):
            raise NotFound(f"The path {parsed.text} does not exist") from None
        raise ValidationError(_inherited_text(parsed.text, "deleted")) from None
    text = f"Successfully deleted {parsed.text}"
    if await _exists(call, parsed.path):
        text += "\n[what your template or the defaults have there is served again]"
    return ToolReply(text, structured={"path": parsed.text})


async def _rename(call: MemoryCall) -> ToolReply:
    old, new = call.parse(call.args.old_path), call.parse(call.args.new_path)
    if old.path is None:
        raise ValidationError(f"Cannot rename the {ROOT} directory itself")
    if new.path is None or await _exists(call, new.path):
        raise ValidationError(f"The destination {new.text} already exists")
    if not await _exists(call, old.path):
        raise NotFound(f"The path {old.text} does not exist")
    try:
        await own_files.move_own(call.own, old.path, new.path, call.reason(old.path))
    except WorkspaceConflict:
        raise ValidationError(f"The destination {new.text} already exists") from None
    except NotFound:
        if not await _exists(call, old.path):
            raise NotFound(f"The path {old.text} does not exist") from None
        raise ValidationError(_inherited_text(old.text, "renamed")) from None
    text = f"Successfully renamed {old.text} to {new.text}"
    return ToolReply(text, structured={"path": new.text, "oldPath": old.text})


async def _exists(call: MemoryCall, path: Path) -> bool:
    if await own_files.find_own_file(call.own, path) is not None:
        return True
    return (await own_files.list_own_files(call.own, path)).exists


def _not_found(name: str) -> NotFound:
    return NotFound(f"The path {name} does not exist. Please provide a valid path.")


def _already_exists(name: str) -> ValidationError:
    return ValidationError(f"File {name} already exists")


def _inherited_text(name: str, verb: str) -> str:
    return f"{name} comes from your template or the defaults and cannot be {verb}; you can edit it"


def _changed_reply(name: str, text: str, changed: ChangedText) -> ToolReply:
    structured = {
        **{"path": name, "type": "file", "version": changed.version},
        "redacted": list(changed.redacted.replaced),
    }
    return ToolReply(with_redaction_note(text, changed.redacted.replaced), structured=structured)


_COMMANDS: Final[Mapping[MemoryCommand, Callable[[MemoryCall], Awaitable[ToolReply]]]] = {
    MemoryCommand.VIEW: _view,
    MemoryCommand.CREATE: _create,
    MemoryCommand.STR_REPLACE: _replace,
    MemoryCommand.INSERT: _insert,
    MemoryCommand.DELETE: _delete,
    MemoryCommand.RENAME: _rename,
}

TOOL: Final = Tool(
    "memory",
    "Reads and changes the files that are your own, below /memories: MEMORY.md, memory/, notes/. "
    "View /memories before you start a task, and write down what you will need after this session. "
    "Another path, such as /memories/ideas.md, is a file in memory/.",
    MemoryArguments,
    _run,
    private_only=True,
    writes=True,
    destructive=True,
    results=(MemoryResult,),
)
