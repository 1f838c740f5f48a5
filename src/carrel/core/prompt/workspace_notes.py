"""What a prompt says of the workspaces that are attached to an agent, and what is kept of that.

All of it is frozen with a run, so that its prompt stays the same whatever becomes of the records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from carrel.core.runs import Audience
from carrel.core.sandbox.tool_access import READING, RUNNING, SEARCHING, WRITING, ToolAccess

_ATTACHED: Final = "prompt:attached:"
_TOOLS: Final = "prompt:tools"
_LONGEST: Final = 200
_CHANGING: Final = (*WRITING, *SEARCHING, *RUNNING)


class WorkspaceNote(Struct, frozen=True, array_like=True):
    """One workspace as a prompt knows it."""

    name: str
    workspace: str
    namespace: str
    description: str
    writable: bool
    harness: bool


class WorkspaceNotes(Struct, frozen=True):
    attached: tuple[WorkspaceNote, ...] = ()
    tools: tuple[str, ...] = ()
    """Those that the agent has, of the ones that work there."""

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Their ids, each once."""
        return tuple(dict.fromkeys(one.workspace for one in self.attached))

    def words(self) -> Mapping[str, str]:
        """All of it as a run keeps it."""
        if not self.attached:
            return {}
        said = {
            f"{_ATTACHED}{at:03}": msgspec.json.encode(one).decode()
            for at, one in enumerate(self.attached)
        }
        return {**said, _TOOLS: " ".join(self.tools)}

    @classmethod
    def of(cls, words: Mapping[str, str]) -> WorkspaceNotes:
        """The same again, from what a run has kept."""
        names = sorted(name for name in words if name.startswith(_ATTACHED))
        attached = tuple(msgspec.json.decode(words[name], type=WorkspaceNote) for name in names)
        return cls(attached, tuple(words.get(_TOOLS, "").split()))

    @property
    def key(self) -> str:
        """Changes when anything does that the prompt says of them."""
        return msgspec.json.encode(self).decode()

    def block(self, mode: Audience) -> str:
        """What stands in the prompt; nothing where no workspace wants it said."""
        if not self.tools or not any(one.harness for one in self.attached):
            return ""
        told = [*self._list(), *self._guidance(mode)]
        return "\n".join(["<workspace>", *told, "</workspace>"])

    def _list(self) -> Iterator[str]:
        yield "Files that you share with others are in these workspaces:"
        for at, one in enumerate(self.attached):
            tags = [tag for tag, holds in self._tags(at, one) if holds]
            about = f": {_line(one.description)}" if one.description else ""
            yield " ".join([f"- {one.name}", *tags, f"[{one.namespace}]"]) + about

    @staticmethod
    def _tags(at: int, one: WorkspaceNote) -> Sequence[tuple[str, bool]]:
        return ("(default)", at == 0), ("(read-only)", not one.writable)

    def _guidance(self, mode: Audience) -> Iterator[str]:
        looking = [tool for tool in READING if tool in self.tools]
        changing = [tool for tool in _CHANGING if tool in self.tools]
        writable = any(one.writable for one in self.attached)
        if looking:
            yield f"In each of them you can use {_joined(looking)}; paths begin at its own top."
        if writable and changing:
            only = (
                "" if all(one.writable for one in self.attached) else ", but not in a read-only one"
            )
            yield f"You can also use {_joined(changing)} there{only}."
        if len(self.attached) > 1:
            yield "Say which one you mean by `workspace`; if you do not, it is the default one."
        if writable and "write" in changing:
            yield _KEEPING + (_LOADED if mode is Audience.MAIN else "")


_KEEPING: Final = (
    "What should still be known later goes into MEMORY.md at the top of a workspace, and plans into"
    " TASKS.md beside it: both are files like any other."
)
_LOADED: Final = " You are shown MEMORY.md whenever you begin."


def workspace_notes(hands: ToolAccess, tools: Collection[str]) -> WorkspaceNotes:
    """Of what an agent can reach, and with which of its tools."""
    attached = tuple(
        WorkspaceNote(
            *(reach.name, reach.workspace, reach.namespace, reach.description),
            writable=reach.sandbox is not None,
            harness=reach.harness,
        )
        for reach in hands.workspaces
    )
    return WorkspaceNotes(attached, tuple(sorted(tools)))


def _line(text: str) -> str:
    """On one line of no great length, in which nothing can end the block."""
    flat = " ".join(text.split()).replace("<", "&lt;")
    return flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1].rstrip() + "…"


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
