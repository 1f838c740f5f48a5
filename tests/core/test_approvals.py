"""What may become of an approval, whatever is tried in whatever order."""

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
    "approve": lambda one, at: answer_approval(one, True, "ada", at, "go on"),
    "deny": lambda one, at: answer_approval(one, False, "ada", at, "no"),
    "expire": expire_approval,
    "cancel": lambda one, at: cancel_approval(one, "superseded", at),
    "begin": start_approval,
    "finish": lambda one, at: finish_approval(one, ToolResult("done"), at),
}
TRIES = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1000, 2500)), max_size=12)


@given(TRIES)
def test_it_begins_once_at_most_and_only_after_a_yes_in_time(tries: list[tuple[str, int]]) -> None:
    one, begins, yes = NEW, 0, False
    for name, at in tries:
        was = one
        try:
            one = STEPS[name](one, at)
        except (Conflict, Expired):
            assert one is was
            continue
        if one is was:
            assert was.answer is (name == "approve")
            continue
        assert one.status in TRANSITIONS[was.status]
        yes = yes or (name == "approve" and at < NEW.expires)
        begins += name == "begin"
        assert name != "begin" or yes
    assert begins <= 1
    assert (one.model_result is not None) is one.is_final
    assert (one.sealed == "") is one.is_final
    assert (one.ended is not None) is one.is_final


@given(TRIES)
def test_what_is_over_stays_as_it_is(tries: list[tuple[str, int]]) -> None:
    for over in (
        STEPS["deny"](NEW, 1500),
        expire_approval(NEW, 2000),
        cancel_approval(NEW, "superseded", 1500),
        finish_approval(
            start_approval(answer_approval(NEW, True, "ada", 1500), 1600), ToolResult("x"), 1700
        ),
    ):
        for name, at in tries:
            try:
                assert STEPS[name](over, at) is over
            except Refusal as refused:
                assert isinstance(refused, (Conflict, Expired))


def test_the_same_answer_is_fine_another_is_not_and_late_is_too_late() -> None:
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


def test_what_the_model_is_told() -> None:
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


@given(TRIES)
def test_it_is_the_same_when_it_comes_out_of_its_record(tries: list[tuple[str, int]]) -> None:
    one = NEW
    for name, at in tries:
        try:
            one = STEPS[name](one, at)
        except (Conflict, Expired):
            continue
    change = approval_change(one, 3)
    assert change.body is not None
    assert (
        approval_from_record(Record("acme", RecordType.APPROVAL, "apr_1", 4, change.body, 0, 0))
        == one
    )
    assert one.asker.to_actor("acme") == KEY
    assert f"status:{one.status}" in change.index_keys
    assert any(link.startswith("session:") for link in change.index_keys) is (
        one.status is ApprovalStatus.REQUESTED
    )
    assert len(change.unique_keys) == 1


def test_events_tell_whose_it_is_and_nothing_of_what_it_does() -> None:
    stages = [NEW, answer_approval(NEW, True, "ada", 1500, "canary")]
    stages.append(start_approval(stages[-1], 1600))
    stages.append(finish_approval(stages[-1], ToolResult("canary"), 1700))
    told = [approval_events(one) for one in stages]
    assert [[one.type for one in some] for some in told] == [
        ["approval.requested"],
        ["approval.answered"],
        [],
        ["approval.finished"],
    ]
    assert "canary" not in str(told)
    assert told[0][0].payload == {
        "approvalId": "apr_1",
        "agentId": "agt_1",
        "tool": "bash",
        "status": "requested",
    }


def test_two_calls_are_the_same_however_their_arguments_are_ordered() -> None:
    assert call_fingerprint("bash", {"a": 1, "b": [2]}) == call_fingerprint(
        "bash", {"b": [2], "a": 1}
    )
    assert call_fingerprint("bash", {"a": 1}) != call_fingerprint("bash", {"a": "1"})
    assert call_fingerprint("bash", {"a": 1}) != call_fingerprint("write", {"a": 1})


def test_rights_are_those_of_whoever_asked() -> None:
    ada = Actor("acme", "per_1", role=Role.OWNER, person="per_1", key="key_9")
    assert Requester.from_actor(ada).to_actor("acme") == ada
