"""The cascade: from an agent's config to its tools, their schemas, and what each call may do.

Everything here is tried for every configuration of two sandboxes and two workspaces.
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

ONE, TWO = "sb_1", "sb_2"
ABSENT: Final = object()
REFS: Final = (ABSENT, None, ONE, TWO)
KINDS: Final = tuple(product(PermissionMode, (False, True)))
FILE_TOOLS: Final = frozenset({"read", "write", "edit", "glob", "grep", "bash"})
MATRIX: Final = {
    PermissionMode.ASK: {"write", "edit", "bash"},
    PermissionMode.EDIT: {"bash"},
    PermissionMode.BYPASS: set(),
}
"""Before which tools somebody is asked, as the account's users were told."""
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
    """One configuration, and what the seed's tables say of it."""

    def __init__(self, kinds: Any, agent: str | None, refs: tuple[Any, ...]) -> None:
        (mode, kept), (other, also) = kinds
        self.sandboxes = {
            ONE: SandboxSpec(ONE, 1, mode, {"persistent": kept}),
            TWO: SandboxSpec(TWO, 1, other, {"persistent": also}),
        }
        attached = [{"name": f"w{n}", "workspaceId": f"ws_{n}"} for n, _ in enumerate(refs)]
        for said, ref in zip(attached, refs, strict=True):
            if ref is not ABSENT:
                said["sandbox"] = ref
        given: dict[str, Any] = {"workspaces": attached}
        if agent is not None:
            given["sandbox"] = agent
        self.config: AgentConfig = parse_config(given)
        self.agent = self.sandboxes.get(agent or "")
        self.effective = [self.agent if r is ABSENT else self.sandboxes.get(r) for r in refs]
        reaches = [
            AttachedWorkspace(f"w{n}", f"ws_{n}", "fs-", through)
            for n, through in enumerate(self.effective)
        ]
        self.hands = ToolAccess(self.agent, tuple(reaches))

    def answer(self, tool: str, workspace: str | None) -> CallTarget | type[Exception]:
        try:
            return resolve_call_target(tool, self.hands, workspace)
        except (Forbidden, ValidationError, NotFound) as refused:
            return type(refused)


def cases() -> Iterator[Case]:
    for kinds in product(KINDS, KINDS):
        for agent in (None, ONE, TWO):
            for count in range(3):
                for refs in product(REFS, repeat=count):
                    yield Case(kinds, agent, refs)


ALL: Final = tuple(cases())


def test_there_is_every_configuration() -> None:
    assert len(ALL) == 36 * 3 * (1 + 4 + 16)


def test_the_tools_are_those_of_the_table() -> None:
    for case in ALL:
        writable = [each for each in case.effective if each]
        if not case.effective:
            wanted = {"bash"} if case.agent else set()
        elif not writable:
            wanted = {"read", "glob"}
        else:
            wanted = set(FILE_TOOLS)
        assert available_tool_names(case.config) == wanted
        following = {"async_status"} if any(each.is_persistent for each in writable) else set()
        assert available_tool_names(case.config, case.hands) == wanted | following
        assert available_tool_names(case.config, case.hands) <= WORKSPACE_TOOL_NAMES


def test_a_call_works_in_the_sandbox_of_the_workspace_that_it_means_and_in_no_other() -> None:
    for case in ALL:
        for at, through in enumerate(case.effective):
            for name in {f"w{at}"} | ({None, ""} if at == 0 else set()):
                for tool in FILE_TOOLS:
                    answer = case.answer(tool, name)
                    if through is None and tool not in {"read", "glob"}:
                        assert answer is Forbidden
                        continue
                    assert isinstance(answer, CallTarget)
                    assert answer.workspace is case.hands.workspaces[at]
                    assert answer.sandbox is through
                    mode = through.mode if through else None
                    assert answer.requires_approval == (mode is not None and tool in MATRIX[mode])


def test_nothing_reaches_a_read_only_workspace_and_nobody_is_asked_to_let_it() -> None:
    """However it is named, and whatever the agent's own sandbox would allow."""
    for case in ALL:
        read_only = {f"w{n}" for n, through in enumerate(case.effective) if through is None}
        for tool, name in product(FILE_TOOLS, (None, "", "w0", "w1", "w2")):
            answer = case.answer(tool, name)
            if (
                isinstance(answer, CallTarget)
                and answer.workspace
                and answer.workspace.name in read_only
            ):
                assert tool in {"read", "glob"}
                assert (answer.requires_approval, answer.sandbox) == (False, None)
            if isinstance(answer, CallTarget) and tool in {"bash", "write", "edit", "grep"}:
                assert answer.sandbox is not None
                assert answer.workspace is None or answer.workspace.sandbox is answer.sandbox


def test_a_command_runs_in_no_workspace_only_where_there_is_none() -> None:
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


def test_a_name_that_nobody_gave_is_refused_whatever_the_tool() -> None:
    for case in ALL:
        for tool in FILE_TOOLS:
            assert case.answer(tool, "elsewhere") is ValidationError
    with pytest.raises(ValidationError, match=r"\Aunknown workspace elsewhere\Z"):
        resolve_call_target("read", ALL[-1].hands, "elsewhere")
    with pytest.raises(ValidationError, match="no workspace is attached"):
        resolve_call_target("read", ToolAccess())


def test_the_words_are_those_that_models_are_told() -> None:
    reader = ToolAccess(None, (AttachedWorkspace("w", "ws_1", "fs-", None),))
    with pytest.raises(Forbidden, match=r"\Aworkspace is read-only\Z"):
        resolve_call_target("bash", reader)
    with pytest.raises(NotFound, match="no sandbox available for this command"):
        resolve_call_target("bash", ToolAccess())


def test_a_workspace_is_to_choose_only_where_there_are_two() -> None:
    for case in ALL:
        names = [reach.name for reach in case.hands.workspaces]
        for given in (SCHEMA, with_workspace(SCHEMA, ToolAccess())):
            fitted = with_workspace(given, case.hands)
            assert fitted["required"] == ["command"]
            if len(names) < 2:
                assert "workspace" not in fitted["properties"]
            else:
                said = fitted["properties"]["workspace"]
                assert (said["type"], said["enum"]) == ("string", names)
                assert names[0] in said["description"]
            assert fitted["properties"]["command"] == SCHEMA["properties"]["command"]


def test_a_command_can_be_left_to_itself_only_where_a_workspace_has_a_persistent_sandbox() -> None:
    for case in ALL:
        lasting = any(each and each.is_persistent for each in case.effective)
        for given in (SCHEMA, with_background(SCHEMA, ToolAccess())):
            fitted = with_background(given, case.hands)
            assert ("background" in fitted["properties"]) == lasting
            assert lasting == ("async_status" in available_tool_names(case.config, case.hands))


def test_who_is_asked_before_what_is_the_seeds_matrix() -> None:
    for mode, asked in MATRIX.items():
        assert {tool for tool in WORKSPACE_TOOL_NAMES if requires_approval(tool, mode)} == asked


def test_a_namespace_is_told_by_account_and_workspace_alone() -> None:
    assert derive_namespace("acct_1", "ws_a") == "fs-e14c98641c05f7c614be174b12560c61cdfbafd0"
