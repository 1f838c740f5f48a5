"""Tenants, people, keys, secrets, policy, webhooks and the audit log, over every driver."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import carrel

pytestmark = pytest.mark.anyio


async def test_tenant_is_renamed(api: Any) -> None:
    tenant = await api.tenants.me()
    assert (await api.tenants.rename("Acme & Co")).name == "Acme & Co"
    assert (await api.tenants.me()).id == tenant.id


async def test_people_and_keys_are_created_changed_and_deleted(api: Any) -> None:
    ann = await api.people.create("Ann", "ann@example.com", "admin", title="Librarian")
    ann = await api.people.change(ann.id, role="owner", title=None)
    assert (ann.role, ann.title) == ("owner", None)
    assert await api.people.get(ann.id) == ann
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    with pytest.raises(carrel.Forbidden):
        await api.keys.create("laptop", "person", person_id=ann.id)
    invitation = await api.people.invite(ann.id)
    assert invitation.link.endswith(f"/sign-in#code={invitation.code}")
    created = await api.keys.create("laptop", "person", expires_at=tomorrow)
    assert abs(created.expires_at - tomorrow) < timedelta(milliseconds=1)
    assert created.key.startswith(created.prefix)
    assert {key.name for key in await api.keys.list()} == {"owner", "laptop"}
    assert (await api.keys.get(created.id)).last_used_at is None
    rotated = await api.keys.rotate(created.id)
    assert (rotated.name, rotated.expires_at) == ("laptop", created.expires_at)
    assert (await api.keys.get(created.id)).expires_at < created.expires_at
    await api.keys.revoke(created.id)
    await api.people.delete(ann.id)
    [owner] = await api.people.list()
    with pytest.raises(carrel.Conflict):
        await api.people.delete(owner.id)
    entries = await api.audit.list(limit=2)
    assert [entry.reason for entry in entries] == ["remove a person", "revoke a key"]
    [earlier] = await api.audit.list(before=entries[1].id, limit=1)
    assert earlier.at <= entries[1].at
    assert earlier.subjects


async def test_key_is_narrowed_to_scopes(api: Any) -> None:
    key = await api.keys.create("reader", scopes=["workspace:read"], workspace="team")
    assert (key.kind, key.scopes, key.workspace) == ("service", ("workspace:read",), "team")


async def test_invalid_fields_are_refused(api: Any) -> None:
    with pytest.raises(carrel.ValidationError):
        await api.people.create("Ann", "ann@example.com", "queen")
    with pytest.raises(carrel.ValidationError):
        await api.keys.create("key", "passport")
    with pytest.raises(carrel.ValidationError):
        await api.keys.create("key", scopes=["workspace:rule"])
    with pytest.raises(carrel.ValidationError):
        await api.keys.create("key", expires_at=datetime(2100, 1, 1))
    with pytest.raises(carrel.ValidationError):
        await api.policy.put({"limits": {"maxFiles": 0}})


async def test_unknown_fields_raise_type_error_and_change_nothing(api: Any) -> None:
    await api.templates.create("calm")
    await api.agents.create("ada", template_id="calm")
    [owner] = await api.people.list()
    before = (await api.agents.get("ada"), await api.templates.get("calm"))
    for change, name in (
        (api.agents.change, "ada"),
        (api.templates.change, "calm"),
        (api.people.change, owner.id),
    ):
        with pytest.raises(TypeError, match="foo"):
            await change(name, name="Other", foo=1)
    assert (await api.agents.get("ada"), await api.templates.get("calm")) == before
    assert await api.people.list() == (owner,)


async def test_policy_is_previewed_and_replaced(api: Any) -> None:
    preview = await api.policy.preview({"classes": [{"pattern": "SOUL.md", "class": "pinned"}]})
    assert [change["path"] for change in preview["changes"]] == ["SOUL.md"]
    stored = await api.policy.put({"limits": {"maxFiles": 500}}, reason="smaller")
    assert stored["limits"]["maxFiles"] == 500
    assert await api.policy.get() == stored


async def test_pinning_a_file_with_placeholders_is_confirmed(api: Any) -> None:
    await api.templates.create("calm")
    await api.template("calm").put("a.md", "{{AGENT_NAME}}")
    policy = {"classes": [{"pattern": "a.md", "class": "pinned"}]}
    with pytest.raises(carrel.Conflict) as refused:
        await api.policy.put(policy)
    assert refused.value.details == {"placeholderFiles": ["a.md"]}
    assert (await api.policy.put(policy, confirm=True))["placeholderFiles"] == ["a.md"]


async def test_secret_is_redacted_until_it_is_deleted(api: Any) -> None:
    secret = await api.secrets.put("db", "hunter2hunter2")
    assert (await api.secrets.list(), await api.secrets.get("db")) == ((secret,), secret)
    stored = await api.workspace().put("SOUL.md", "say hunter2hunter2")
    assert stored.content == "say [REDACTED:db]"
    await api.secrets.delete("db")
    assert (await api.workspace().put("a.md", "hunter2hunter2")).content == "hunter2hunter2"
    with pytest.raises(carrel.NotFound):
        await api.secrets.get("db")


async def test_webhook_is_created_changed_and_deleted(api: Any) -> None:
    webhook = await api.webhooks.create("https://93.184.216.34/hook", ["workspace.updated"])
    assert webhook.secret.startswith("whsec_")
    changed = await api.webhooks.change(webhook.id, active=False)
    assert (changed.active, changed.secret) == (False, None)
    assert await api.webhooks.list() == (changed,)
    assert await api.webhooks.get(changed.id) == changed
    assert await api.webhooks.deliveries(changed.id) == ()
    with pytest.raises(carrel.NotFound):
        await api.webhooks.replay(changed.id, "dlv_nothing")
    await api.webhooks.delete(changed.id)
    assert await api.webhooks.list() == ()
    with pytest.raises(carrel.ValidationError):
        await api.webhooks.create("http://127.0.0.1/hook")


async def test_sandboxes_and_workspaces_are_created_changed_and_deleted(api: Any) -> None:
    sandbox = await api.sandboxes.create("usual", {"envVars": {"A": "x"}}, description="ours")
    assert (sandbox.name, sandbox.description) == ("usual", "ours")
    assert sandbox.config["envVars"] == {"A": "********"}
    changed = await api.sandboxes.change(sandbox.id, config={"timeout": 9}, description=None)
    assert (changed.description, changed.config["timeout"]) == (None, 9)
    assert changed.config["envVars"] == {"A": "********"}
    assert await api.sandboxes.list() == (await api.sandboxes.get(sandbox.id),) == (changed,)
    with pytest.raises(carrel.ValidationError, match=r"config.timeout"):
        await api.sandboxes.change(sandbox.id, config={"timeout": 0})
    with pytest.raises(carrel.ValidationError, match="config must be an object"):
        await api.sandboxes.create("x", 5)
    shared = await api.workspaces.create("notes")
    assert shared.namespace.startswith("fs-")
    await api.workspace(shared.id).put("a.md", "1")
    renamed = await api.workspaces.change(shared.id, name="other")
    assert await api.workspaces.list() == (await api.workspaces.get(shared.id),) == (renamed,)
    await api.workspaces.delete(shared.id)
    await api.sandboxes.delete(sandbox.id)
    with pytest.raises(carrel.NotFound):
        await api.workspace(shared.id).get("a.md")
    with pytest.raises(carrel.NotFound, match="Sandbox not found"):
        await api.sandboxes.delete(sandbox.id)
    assert (await api.sandboxes.list(), await api.workspaces.list()) == ((), ())


async def test_a_key_is_revoked_with_the_keys_that_replaced_it(api: Any) -> None:
    stolen = await api.keys.create("laptop", "person")
    replacement = await api.keys.rotate(stolen.id)
    assert replacement.created_by_key_id
    await api.keys.revoke(stolen.id, created_keys=True)
    assert not {stolen.id, replacement.id} & {key.id for key in await api.keys.list()}
