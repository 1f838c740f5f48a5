"""Prompt section about the workspaces attached to an agent.

It is frozen with a run, so the run's prompt does not change when records do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.runs import Audience
from carrel.core.sandbox.tool_access import (
    COMMAND_TOOLS,
    READ_TOOLS,
    SEARCH_TOOLS,
    WRITE_TOOLS,
    ToolAccess,
)
from carrel.core.sessions.shared_session_visibility import is_visible

_NOTE_PREFIX: Final = "prompt:attached:"
_TOOLS_KEY: Final = "prompt:tools"
_MAX_DESCRIPTION_LENGTH: Final = 200
_MODIFYING_TOOLS: Final = (*WRITE_TOOLS, *SEARCH_TOOLS, *COMMAND_TOOLS)


class WorkspaceNote(Struct, frozen=True, array_like=True):
    """One attached workspace as described in the prompt."""

    name: str
    workspace: str
    namespace: str
    description: str
    writable: bool
    notes_enabled: bool


class WorkspaceNotes(Struct, frozen=True):
    attached: tuple[WorkspaceNote, ...] = ()
    tools: tuple[str, ...] = ()
    """Workspace tools that the agent has."""

    @property
    def workspace_ids(self) -> tuple[str, ...]:
        """Ids without duplicates."""
        return tuple(dict.fromkeys(note.workspace for note in self.attached))

    def to_run_variables(self) -> Mapping[str, str]:
        """Serialize the notes into a run's variables."""
        if not self.attached:
            return {}
        variables = {
            f"{_NOTE_PREFIX}{index:03}": msgspec.json.encode(note).decode()
            for index, note in enumerate(self.attached)
        }
        return {**variables, _TOOLS_KEY: " ".join(self.tools)}

    @classmethod
    def from_run_variables(cls, run_variables: Mapping[str, str]) -> WorkspaceNotes:
        """Restore the notes from a run's variables."""
        names = sorted(name for name in run_variables if name.startswith(_NOTE_PREFIX))
        attached = tuple(
            msgspec.json.decode(run_variables[name], type=WorkspaceNote) for name in names
        )
        return cls(attached, tuple(run_variables.get(_TOOLS_KEY, "").split()))

    @property
    def key(self) -> str:
        """Cache key of the section."""
        return msgspec.json.encode(self).decode()

    def render(self, mode: Audience) -> str:
        """Text of the section; empty if no workspace has notes enabled."""
        if not self.tools or not any(note.notes_enabled for note in self.attached):
            return ""
        lines = [*self._workspace_lines(), *self._guidance_lines(mode)]
        return "\n".join(["<workspace>", *lines, "</workspace>"])

    def _workspace_lines(self) -> Iterator[str]:
        yield "Files that you share with others are in these workspaces:"
        for index, note in enumerate(self.attached):
            tags = [tag for tag, applies in self._tags(index, note) if applies]
            suffix = f": {_single_line(note.description)}" if note.description else ""
            yield " ".join([f"- {note.name}", *tags, f"[{note.namespace}]"]) + suffix

    @staticmethod
    def _tags(index: int, note: WorkspaceNote) -> Sequence[tuple[str, bool]]:
        return ("(default)", index == 0), ("(read-only)", not note.writable)

    def _guidance_lines(self, mode: Audience) -> Iterator[str]:
        read_tools = [tool for tool in READ_TOOLS if tool in self.tools]
        modifying_tools = [tool for tool in _MODIFYING_TOOLS if tool in self.tools]
        writable = any(note.writable for note in self.attached)
        if read_tools:
            tools = _join_names(read_tools)
            yield f"In each of them you can use {tools}; paths are relative to its root."
        if writable and modifying_tools:
            exception = (
                ""
                if all(note.writable for note in self.attached)
                else ", but not in a read-only one"
            )
            yield f"You can also use {_join_names(modifying_tools)} there{exception}."
        if len(self.attached) > 1:
            yield "Select one with `workspace`; without it the default is used."
        if writable and "write" in modifying_tools:
            has_memory = is_visible(MEMORY_PATH, mode, is_shared_workspace=True)
            yield _MEMORY_HINT if has_memory else _TASKS_HINT


_MEMORY_HINT: Final = (
    "Write lasting facts to MEMORY.md at the root of a workspace and plans to TASKS.md beside it;"
    " both are ordinary files. MEMORY.md is part of your prompt."
)
_TASKS_HINT: Final = (
    "Write plans to TASKS.md at the root of a workspace. Private files such as MEMORY.md are not"
    " available in this session."
)


def workspace_notes(access: ToolAccess, tools: Collection[str]) -> WorkspaceNotes:
    """Build the notes from an agent's tool access."""
    attached = tuple(
        WorkspaceNote(
            *(workspace.name, workspace.workspace, workspace.namespace, workspace.description),
            writable=workspace.sandbox is not None,
            notes_enabled=workspace.notes_enabled,
        )
        for workspace in access.workspaces
    )
    return WorkspaceNotes(attached, tuple(sorted(tools)))


def _single_line(text: str) -> str:
    """One bounded line that cannot close the block."""
    flat = " ".join(text.split()).replace("<", "&lt;")
    return (
        flat
        if len(flat) <= _MAX_DESCRIPTION_LENGTH
        else flat[: _MAX_DESCRIPTION_LENGTH - 1].rstrip() + "…"
    )


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
