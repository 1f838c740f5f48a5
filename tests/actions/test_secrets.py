"""Secrets are kept to be recognised, and are never readable."""

from __future__ import annotations

import pytest
from tests.actions.cast import founded, rivals

from carrel.actions.accounts import secrets
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.policy import tenant_rules as rules
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.ports import CorruptContent, Ports

pytestmark = pytest.mark.anyio
VALUE = "hunter2-hunter2"


async def test_a_secret_is_redacted_from_the_next_write_on_and_no_longer_once_it_is_gone(
    world: Ports,
) -> None:
    _, owner = await founded(world)
    stack = await stacks.default_stack(world, owner)
    content, path = f"the password is {VALUE}".encode(), Path("a.md")
    await secrets.put(world, owner, "db-password", VALUE)
    written = await files.put(world, stack, path, content, owner)
    assert written.content == b"the password is [REDACTED:db-password]"
    await secrets.put(world, owner, "db-password", "another-value")
    assert (await files.put(world, stack, path, content, owner)).content == content
    await secrets.delete(world, owner, "db-password")
    again = b"another-value"
    assert (await files.put(world, stack, path, again, owner)).content == again


async def test_a_value_is_sealed_for_its_tenant_and_id_alone(world: Ports) -> None:
    _, owner = await founded(world)
    kept = await secrets.put(world, owner, "token", VALUE)
    assert VALUE not in str(kept)
    sealed = kept.body["sealed"]
    context = rules.secret_context(owner.tenant, "token")
    assert world.vault.open(sealed, context).decode() == VALUE
    for other in (rules.secret_context("ten_0", "token"), rules.secret_context(owner.tenant, "x")):
        with pytest.raises(CorruptContent):
            world.vault.open(sealed, other)


async def test_a_secret_is_replaced_and_remembers_since_when_it_is_there(world: Ports) -> None:
    _, owner = await founded(world)
    first = await secrets.put(world, owner, "token", VALUE)
    second = await secrets.put(world, owner, "token", "another-value")
    assert (second.revision, second.created) == (2, first.created)
    assert second == await secrets.get(world, owner, "token")


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
async def test_what_cannot_be_kept_is_refused_without_being_repeated(
    world: Ports, id: str, value: str
) -> None:
    _, owner = await founded(world)
    with pytest.raises(ValidationError) as refused:
        await secrets.put(world, owner, id, value)
    assert value not in str(refused.value)
    assert (await secrets.listing(world, owner)).items == ()


async def test_rivals_who_put_one_secret_all_succeed(world: Ports) -> None:
    _, owner = await founded(world)
    values = [f"value-number-{number}" for number in range(4)]
    _, failed = await rivals(*(secrets.put(world, owner, "token", value) for value in values))
    assert not failed
    kept = await secrets.get(world, owner, "token")
    context = rules.secret_context(owner.tenant, "token")
    assert world.vault.open(kept.body["sealed"], context).decode() in values


async def test_secrets_of_another_tenant_are_not_there(world: Ports) -> None:
    _, owner = await founded(world)
    _, other = await founded(world, "globex")
    await secrets.put(world, other, "token", VALUE)
    for attempt in (secrets.get, secrets.delete):
        with pytest.raises(NotFound):
            await attempt(world, owner, "token")
    assert (await secrets.listing(world, owner)).items == ()


async def test_a_secret_is_deleted_once(world: Ports) -> None:
    _, owner = await founded(world)
    await secrets.put(world, owner, "token", VALUE)
    done, refused = await rivals(*(secrets.delete(world, owner, "token") for _ in range(3)))
    assert len(done) == 1
    assert {type(why) for why in refused} == {NotFound}
