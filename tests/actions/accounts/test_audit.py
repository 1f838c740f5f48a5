"""The audit lists who changed which records, newest first, within the tenant."""

from __future__ import annotations

import pytest
from tests.support.tenants import create_tenant

from carrel.actions.accounts import audit, secrets
from carrel.actions.agents import templates
from carrel.core.errors import ValidationError
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def test_every_record_change_is_an_audit_entry(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    template = await templates.create(ports, owner, "sales", "Sales")
    await secrets.put(ports, owner, "token", "hunter2-hunter2")
    await templates.delete(ports, owner, template.id)
    entries = (await audit.list_audit_entries(ports, owner)).items
    assert [entry.reason for entry in entries] == [
        "delete a template",
        "add a secret",
        "create a template",
        "create the tenant",
    ]
    assert [entry.author for entry in entries] == [owner.name] * 3 + ["platform"]
    assert entries[0].subjects == (f"template/{template.id}",)
    assert created.tenant.id in entries[-1].subjects[0]
    assert "hunter2" not in str(entries)


async def test_audit_pages_go_back_to_the_first_entry(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    for number in range(5):
        await templates.create(ports, owner, f"ours-{number}", "Ours")
        await templates.create(ports, other, f"theirs-{number}", "Theirs")
    ids: list[str] = []
    before: str | None = ""
    while before is not None:
        page = await audit.list_audit_entries(ports, owner, before=before, limit=2)
        ids += [entry.id for entry in page.items]
        assert {entry.tenant for entry in page.items} == {owner.tenant}
        before = page.next
        assert len(ids) <= 6, "a page was repeated"
    assert len(set(ids)) == 6
    assert len({len(id) for id in ids}) == 1
    assert not any(id.isdigit() for id in ids)
    for foreign in ("3", ids[0][:-2], "é", "\0"):
        with pytest.raises(ValidationError):
            await audit.list_audit_entries(ports, other, before=foreign)
    with pytest.raises(ValidationError):
        await audit.list_audit_entries(ports, other, before=ids[0])
