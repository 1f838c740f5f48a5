"""Secrets are redacted from writes and never readable."""

from __future__ import annotations

import pytest
from tests.support.tenants import create_tenant, race

from carrel.actions.accounts import audit, secrets
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.policy import tenant_rules
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.ports import CorruptContent, Ports

pytestmark = pytest.mark.anyio
VALUE = "hunter2-hunter2"


async def test_a_secret_is_redacted_from_the_next_write_until_it_is_deleted(
    ports: Ports,
) -> None:
    _, owner = await create_tenant(ports)
    stack = await stacks.default_stack(ports, owner)
    content, path = f"the password is {VALUE}".encode(), Path("a.md")
    await secrets.put(ports, owner, "db-password", VALUE)
    written = await files.put(ports, stack, path, content, owner)
    assert written.content == b"the password is [REDACTED:db-password]"
    await secrets.put(ports, owner, "db-password", "another-value")
    assert (await files.put(ports, stack, path, content, owner)).content == content
    await secrets.delete(ports, owner, "db-password")
    again = b"another-value"
    assert (await files.put(ports, stack, path, again, owner)).content == again


async def test_a_value_is_sealed_for_its_tenant_and_id(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    stored = await secrets.put(ports, owner, "token", VALUE)
    assert VALUE not in str(stored)
    sealed = stored.body["sealed"]
    context = tenant_rules.secret_context(owner.tenant, "token")
    assert ports.vault.open(sealed, context).decode() == VALUE
    for other in (
        tenant_rules.secret_context("ten_0", "token"),
        tenant_rules.secret_context(owner.tenant, "x"),
    ):
        with pytest.raises(CorruptContent):
            ports.vault.open(sealed, other)


async def test_a_replaced_secret_keeps_its_creation_time(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    first = await secrets.put(ports, owner, "token", VALUE)
    second = await secrets.put(ports, owner, "token", "another-value")
    assert (second.revision, second.created_at) == (2, first.created_at)
    assert second == await secrets.get(ports, owner, "token")


@pytest.mark.parametrize(
    ("id", "value"),
    [
        ("token", "short"),
        ("token", " " * 20),
        ("token", "\ud800" * 10),
        ("token", "x" * 70_000),
        ("", VALUE),
        ("a b", VALUE),
        ("a/b", VALUE),
        ("a\x00", VALUE),
        ("a" * 129, VALUE),
    ],
)
async def test_an_invalid_secret_is_refused_without_repeating_its_value(
    ports: Ports, id: str, value: str
) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError) as refused:
        await secrets.put(ports, owner, id, value)
    assert value not in str(refused.value)
    assert (await secrets.list_secrets(ports, owner)).items == ()


async def test_an_id_that_contains_the_value_of_another_secret_is_refused(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await secrets.put(ports, owner, "token", VALUE)
    for id in (VALUE, f"old-{VALUE}"):
        with pytest.raises(ValidationError, match="the id contains a secret"):
            await secrets.put(ports, owner, id, "another-value")
    entries = (await audit.list_audit_entries(ports, owner)).items
    assert VALUE not in str(entries)


async def test_concurrent_puts_of_one_secret_all_succeed(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    values = [f"value-number-{number}" for number in range(4)]
    _, failed = await race(*(secrets.put(ports, owner, "token", value) for value in values))
    assert not failed
    stored = await secrets.get(ports, owner, "token")
    context = tenant_rules.secret_context(owner.tenant, "token")
    assert ports.vault.open(stored.body["sealed"], context).decode() in values


async def test_secrets_of_another_tenant_are_not_found(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    await secrets.put(ports, other, "token", VALUE)
    for attempt in (secrets.get, secrets.delete):
        with pytest.raises(NotFound):
            await attempt(ports, owner, "token")
    assert (await secrets.list_secrets(ports, owner)).items == ()


async def test_of_concurrent_deletes_of_a_secret_one_succeeds(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await secrets.put(ports, owner, "token", VALUE)
    done, refused = await race(*(secrets.delete(ports, owner, "token") for _ in range(3)))
    assert len(done) == 1
    assert {type(reason) for reason in refused} == {NotFound}
