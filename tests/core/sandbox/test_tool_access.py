"""Tool access: from an agent's config to its tools, their schemas and each call.

Every test covers all configurations of two sandboxes and two workspaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

import pytest

from carrel.core.agents.config import AgentConfig, parse_config
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.sandbox.tool_access import (
    WORKSPACE_TOOL_NAMES,
    AttachedWorkspace,
    CallTarget,
    PermissionMode,
    SandboxSpec,
    ToolAccess,
    available_tool_names,
    derive_namespace,
    requires_approval,
    resolve_call_target,
    with_background,
    with_workspace,
)

FIRST, SECOND = "sb_1", "sb_2"
ABSENT: Final = object()
REFS: Final = (ABSENT, None, FIRST, SECOND)
KINDS: Final = tuple(product(PermissionMode, (False, True)))
FILE_TOOLS: Final = frozenset({"read", "ls", "write", "edit", "glob", "grep", "bash"})
MATRIX: Final = {
    PermissionMode.ASK: {"write", "edit", "bash"},
    PermissionMode.EDIT: {"bash"},
    PermissionMode.BYPASS: set(),
}
"""Tools that need an approval, by permission mode."""
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "workspace": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "background": {"type": "boolean", "default": False},
    },
    "required": ["command"],
    "additionalProperties": False,
}


class Case:
    """One configuration and its expected access."""

    def __init__(self, kinds: Any, agent: str | None, refs: tuple[Any, ...]) -> None:
        (mode, persistent), (other_mode, other_persistent) = kinds
        self.sandboxes = {
            FIRST: SandboxSpec(FIRST, mode, {"persistent": persistent}),
            SECOND: SandboxSpec(SECOND, other_mode, {"persistent": other_persistent}),
        }
        attached = [{"name": f"w{n}", "workspaceId": f"ws_{n}"} for n, _ in enumerate(refs)]
        for workspace, ref in zip(attached, refs, strict=True):
            if ref is not ABSENT:
                workspace["sandbox"] = ref
        fields: dict[str, Any] = {"workspaces": attached}
        if agent is not None:
            fields["sandbox"] = agent
        self.config: AgentConfig = parse_config(fields)
        self.agent = self.sandboxes.get(agent or "")
        self.effective = [self.agent if r is ABSENT else self.sandboxes.get(r) for r in refs]
        workspaces = [
            AttachedWorkspace(f"w{n}", f"ws_{n}", "fs-", sandbox)
            for n, sandbox in enumerate(self.effective)
        ]
        self.access = ToolAccess(self.agent, tuple(workspaces))

    def answer(self, tool: str, workspace: str | None) -> CallTarget | type[Exception]:
        try:
            return resolve_call_target(tool, self.access, workspace)
        except (Forbidden, ValidationError, NotFound) as refused:
            return type(refused)


def cases() -> Iterator[Case]:
    for kinds in product(KINDS, KINDS):
        for agent in (None, FIRST, SECOND):
            for count in range(3):
                for refs in product(REFS, repeat=count):
                    yield Case(kinds, agent, refs)


ALL: Final = tuple(cases())


def test_every_configuration_is_covered() -> None:
    assert len(ALL) == 36 * 3 * (1 + 4 + 16)


def test_the_available_tools_follow_the_table() -> None:
    for case in ALL:
        writable = [sandbox for sandbox in case.effective if sandbox]
        if not case.effective:
            expected = {"bash"} if case.agent else set()
        elif not writable:
            expected = {"read", "ls", "glob"}
        else:
            expected = set(FILE_TOOLS)
        assert available_tool_names(case.config) == expected
        following = (
            {"async_status"} if any(sandbox.is_persistent for sandbox in writable) else set()
        )
        assert available_tool_names(case.config, case.access) == expected | following
        assert available_tool_names(case.config, case.access) <= WORKSPACE_TOOL_NAMES


def test_a_call_runs_in_the_sandbox_of_its_workspace_and_no_other() -> None:
    for case in ALL:
        for index, sandbox in enumerate(case.effective):
            for name in {f"w{index}"} | ({None, ""} if index == 0 else set()):
                for tool in FILE_TOOLS:
                    answer = case.answer(tool, name)
                    if sandbox is None and tool not in {"read", "ls", "glob"}:
                        assert answer is Forbidden
                        continue
                    assert isinstance(answer, CallTarget)
                    assert answer.workspace is case.access.workspaces[index]
                    assert answer.sandbox is sandbox
                    mode = sandbox.mode if sandbox else None
                    assert answer.requires_approval == (mode is not None and tool in MATRIX[mode])


def test_a_read_only_workspace_is_never_written_and_never_asks_for_approval() -> None:
    """Holds for every name of it and every sandbox of the agent."""
    for case in ALL:
        read_only = {f"w{n}" for n, sandbox in enumerate(case.effective) if sandbox is None}
        for tool, name in product(FILE_TOOLS, (None, "", "w0", "w1", "w2")):
            answer = case.answer(tool, name)
            if (
                isinstance(answer, CallTarget)
                and answer.workspace
                and answer.workspace.name in read_only
            ):
                assert tool in {"read", "ls", "glob"}
                assert (answer.requires_approval, answer.sandbox) == (False, None)
            if isinstance(answer, CallTarget) and tool in {"bash", "write", "edit", "grep"}:
                assert answer.sandbox is not None
                assert answer.workspace is None or answer.workspace.sandbox is answer.sandbox


def test_a_command_runs_outside_a_workspace_only_if_none_is_attached() -> None:
    for case in ALL:
        for name in (None, "", "w0", "w1"):
            answer = case.answer("bash", name)
            if isinstance(answer, CallTarget) and answer.workspace is None:
                assert not case.effective
                assert not name
                assert case.agent is not None
                assert answer.sandbox is case.agent
                assert answer.requires_approval == ("bash" in MATRIX[case.agent.mode])
            elif not case.effective:
                assert answer is (ValidationError if name else NotFound)


def test_an_unknown_workspace_name_is_refused_for_every_tool() -> None:
    for case in ALL:
        for tool in FILE_TOOLS:
            assert case.answer(tool, "elsewhere") is ValidationError
    with pytest.raises(ValidationError, match=r"\Aunknown workspace elsewhere\Z"):
        resolve_call_target("read", ALL[-1].access, "elsewhere")
    with pytest.raises(ValidationError, match="no workspace is attached"):
        resolve_call_target("read", ToolAccess())


def test_the_refusal_messages_are_stable() -> None:
    reader = ToolAccess(None, (AttachedWorkspace("w", "ws_1", "fs-", None),))
    with pytest.raises(Forbidden, match=r"\Aworkspace is read-only\Z"):
        resolve_call_target("bash", reader)
    with pytest.raises(NotFound, match="no sandbox available for this command"):
        resolve_call_target("bash", ToolAccess())


def test_the_workspace_parameter_exists_only_for_two_or_more_workspaces() -> None:
    for case in ALL:
        names = [workspace.name for workspace in case.access.workspaces]
        for schema in (SCHEMA, with_workspace(SCHEMA, ToolAccess())):
            adapted = with_workspace(schema, case.access)
            assert adapted["required"] == ["command"]
            if len(names) < 2:
                assert "workspace" not in adapted["properties"]
            else:
                parameter = adapted["properties"]["workspace"]
                assert (parameter["type"], parameter["enum"]) == ("string", names)
                assert names[0] in parameter["description"]
            assert adapted["properties"]["command"] == SCHEMA["properties"]["command"]


def test_the_background_parameter_exists_only_with_a_persistent_sandbox() -> None:
    for case in ALL:
        expected = any(sandbox and sandbox.is_persistent for sandbox in case.effective)
        for schema in (SCHEMA, with_background(SCHEMA, ToolAccess())):
            adapted = with_background(schema, case.access)
            assert ("background" in adapted["properties"]) == expected
            assert expected == ("async_status" in available_tool_names(case.config, case.access))


def test_approval_is_required_as_in_the_matrix() -> None:
    for mode, expected in MATRIX.items():
        assert {tool for tool in WORKSPACE_TOOL_NAMES if requires_approval(tool, mode)} == expected


def test_a_namespace_depends_on_account_and_workspace_alone() -> None:
    assert derive_namespace("acct_1", "ws_a") == "fs-e14c98641c05f7c614be174b12560c61cdfbafd0"
