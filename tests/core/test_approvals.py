"""State transitions of an approval, in any order of attempts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.approvals import (
    TRANSITIONS,
    Approval,
    ApprovalStatus,
    Requester,
    ToolResult,
    answer_approval,
    approval_change,
    approval_events,
    approval_from_record,
    call_fingerprint,
    cancel_approval,
    expire_approval,
    finish_approval,
    format_arguments,
    start_approval,
)
from carrel.core.errors import Conflict, Expired, Refusal
from carrel.core.runs import Audience
from carrel.core.store.record import Record, RecordType

KEY = Actor(
    "acme", "key_1", frozenset({Permission.WORKSPACE_WRITE}), CredentialKind.AGENT, agent="agt_1"
)
NEW = Approval(
    id="apr_1",
    tenant="acme",
    agent="agt_1",
    tool="bash",
    asker=Requester.from_actor(KEY),
    redacted_arguments={"command": "ls"},
    sealed="v1.sealed",
    digest=call_fingerprint("bash", {"command": "ls"}),
    requested=1000,
    expires=2000,
    mode=Audience.SHARED,
    call="call_1",
    session="5f0c8a52-2f5e-4d3c-9f10-000000000000",
)
Step = Callable[[Approval, int], Approval]
STEPS: dict[str, Step] = {
    "approve": lambda approval, at: answer_approval(approval, True, "ada", at, "go on"),
    "deny": lambda approval, at: answer_approval(approval, False, "ada", at, "no"),
    "expire": expire_approval,
    "cancel": lambda approval, at: cancel_approval(approval, "superseded", at),
    "begin": start_approval,
    "finish": lambda approval, at: finish_approval(approval, ToolResult("done"), at),
}
ATTEMPTS = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1000, 2500)), max_size=12)


@given(ATTEMPTS)
def test_an_approval_starts_at_most_once_and_only_after_a_yes_in_time(
    attempts: list[tuple[str, int]],
) -> None:
    approval, starts, yes = NEW, 0, False
    for name, at in attempts:
        before = approval
        try:
            approval = STEPS[name](approval, at)
        except (Conflict, Expired):
            assert approval is before
            continue
        if approval is before:
            assert before.answer is (name == "approve")
            continue
        assert approval.status in TRANSITIONS[before.status]
        yes = yes or (name == "approve" and at < NEW.expires)
        starts += name == "begin"
        assert name != "begin" or yes
    assert starts <= 1
    assert (approval.model_result is not None) is approval.is_final
    assert (approval.sealed == "") is approval.is_final
    assert (approval.ended is not None) is approval.is_final


@given(ATTEMPTS)
def test_a_final_approval_never_changes(attempts: list[tuple[str, int]]) -> None:
    for final in (
        STEPS["deny"](NEW, 1500),
        expire_approval(NEW, 2000),
        cancel_approval(NEW, "superseded", 1500),
        finish_approval(
            start_approval(answer_approval(NEW, True, "ada", 1500), 1600), ToolResult("x"), 1700
        ),
    ):
        for name, at in attempts:
            try:
                assert STEPS[name](final, at) is final
            except Refusal as refused:
                assert isinstance(refused, (Conflict, Expired))


def test_repeating_an_answer_is_accepted_and_a_different_or_late_answer_is_refused() -> None:
    yes = answer_approval(NEW, True, "ada", 1500, "go on")
    assert answer_approval(yes, True, "bob", 9000, "me too") is yes
    with pytest.raises(Conflict, match="already approved"):
        answer_approval(yes, False, "bob", 1600)
    no = answer_approval(NEW, False, "ada", 1500)
    assert answer_approval(no, False, "bob", 9000) is no
    with pytest.raises(Conflict, match="already denied"):
        answer_approval(no, True, "bob", 1600)
    for late in (NEW, expire_approval(NEW, 2000)):
        with pytest.raises(Expired):
            answer_approval(late, True, "ada", 2000)
    with pytest.raises(Conflict, match="superseded"):
        answer_approval(cancel_approval(NEW, "superseded", 1500), False, "ada", 1600)


def test_the_model_result_of_each_outcome() -> None:
    ran = start_approval(answer_approval(NEW, True, "ada", 1500), 1600)
    assert (NEW.model_result, ran.model_result) == (None, None)
    assert finish_approval(ran, ToolResult("hi", False, [1]), 1700).model_result == ToolResult(
        "hi", False, [1]
    )
    assert answer_approval(NEW, False, "ada", 1500, "not on Fridays").model_result == ToolResult(
        "Error: denied by a person: not on Fridays", True
    )
    assert answer_approval(NEW, False, "ada", 1500).model_result == ToolResult(
        "Error: denied by a person", True
    )
    assert cancel_approval(NEW, "superseded", 1500).model_result == ToolResult(
        "not run: superseded", True
    )
    assert expire_approval(NEW, 2000).model_result == ToolResult(
        "not run: the approval expired", True
    )


@given(ATTEMPTS)
def test_an_approval_round_trips_through_its_record(attempts: list[tuple[str, int]]) -> None:
    approval = NEW
    for name, at in attempts:
        try:
            approval = STEPS[name](approval, at)
        except (Conflict, Expired):
            continue
    change = approval_change(approval, 3)
    assert change.body is not None
    assert (
        approval_from_record(Record("acme", RecordType.APPROVAL, "apr_1", 4, change.body, 0, 0))
        == approval
    )
    assert approval.asker.to_actor("acme") == KEY
    assert f"status:{approval.status}" in change.index_keys
    assert any(key.startswith("session:") for key in change.index_keys) is (
        approval.status is ApprovalStatus.REQUESTED
    )
    assert len(change.unique_keys) == 1


def test_events_name_the_approval_without_arguments_or_results() -> None:
    stages = [NEW, answer_approval(NEW, True, "ada", 1500, "canary")]
    stages.append(start_approval(stages[-1], 1600))
    stages.append(finish_approval(stages[-1], ToolResult("canary"), 1700))
    emitted = [approval_events(approval) for approval in stages]
    assert [[event.type for event in events] for events in emitted] == [
        ["approval.requested"],
        ["approval.answered"],
        [],
        ["approval.finished"],
    ]
    assert "canary" not in str(emitted)
    assert emitted[0][0].payload == {
        "approvalId": "apr_1",
        "agentId": "agt_1",
        "tool": "bash",
        "status": "requested",
    }


def test_a_fingerprint_ignores_the_order_of_arguments() -> None:
    assert call_fingerprint("bash", {"a": 1, "b": [2]}) == call_fingerprint(
        "bash", {"b": [2], "a": 1}
    )
    assert call_fingerprint("bash", {"a": 1}) != call_fingerprint("bash", {"a": "1"})
    assert call_fingerprint("bash", {"a": 1}) != call_fingerprint("write", {"a": 1})


def test_a_requester_round_trips_to_its_actor() -> None:
    ada = Actor("acme", "per_1", role=Role.OWNER, person="per_1", key="key_9")
    assert Requester.from_actor(ada).to_actor("acme") == ada


def test_arguments_are_shown_whole_and_no_value_looks_like_another_argument() -> None:
    long = "x" * 100_000
    text = format_arguments({"command": "ls\nworkspace: docs", "n": {"a": "\u202e"}, "t": long})
    assert text.split("\n") == [
        "command:",
        "    ls",
        "    workspace: docs",
        "n:",
        "    {",
        '     "a": "⟨U+202E⟩"',
        "    }",
        f"t: {long}",
    ]
