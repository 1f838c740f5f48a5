"""Options of a single call in its approval: time limit, directory and variables."""

from __future__ import annotations

import pytest
from tests.support.tenant_fixture import ApprovalTenant, run_approval_workers

from carrel.actions.accounts import secrets
from carrel.actions.approvals.transitions import load_shown_arguments
from carrel.core.store.record import RecordType

pytestmark = pytest.mark.anyio


async def test_values_of_variables_are_shown_while_a_decision_is_open_and_never_stored_in_clear(
    tenant: ApprovalTenant,
) -> None:
    value = "open-sesame-4711"
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval("deploy", env={"KEY": value}, cwd="src", timeout=5)
        [stored] = await tenant.ports.records.get(
            tenant.ada.tenant, RecordType.APPROVAL, [approval.id]
        )
        assert stored is not None
        assert value not in str(stored.body)
        visible = await load_shown_arguments(tenant.ports, approval)
        assert visible == {"command": "deploy", "env": {"KEY": value}, "cwd": "src", "timeout": 5}
        await tenant.answer(approval)
        done = await tenant.wait_until_closed(approval)
    after = await load_shown_arguments(tenant.ports, done)
    assert after["env"] == {"KEY": "[hidden]"}
    assert tenant.shell.ran == ["deploy"]


async def test_a_secret_in_a_variable_is_redacted_where_it_is_shown(tenant: ApprovalTenant) -> None:
    await secrets.put(tenant.ports, tenant.ada, "till", "open-sesame-4711")
    approval = await tenant.request_approval("deploy", env={"KEY": "open-sesame-4711"})
    visible = await load_shown_arguments(tenant.ports, approval)
    assert visible["env"] == {"KEY": "[REDACTED:till]"}


async def test_a_call_with_other_options_is_another_call(tenant: ApprovalTenant) -> None:
    first = await tenant.request_approval("deploy", env={"KEY": "1"})
    for options in ({"env": {"KEY": "2"}}, {"cwd": "src"}, {"timeout": 5}):
        assert (await tenant.request_approval("deploy", **options)).id != first.id
    assert (await tenant.request_approval("deploy", env={"KEY": "1"})).id == first.id


async def test_a_token_in_a_command_is_shown_as_its_name_and_hides_nothing_else(
    tenant: ApprovalTenant,
) -> None:
    token = "ghp_" + "a1B2" * 9
    approval = await tenant.request_approval(f"curl -H 'Authorization: {token}' a.example; ls")
    visible = await load_shown_arguments(tenant.ports, approval)
    assert visible == {"command": "curl -H 'Authorization: [REDACTED:github-token]' a.example; ls"}
