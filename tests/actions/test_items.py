"""Shared items on every store: visibility and concurrent writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.support.items import actor_of_agent, create_agent, read_items
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant, race, start_after_yields

from carrel.actions import items
from carrel.actions.accounts import secrets
from carrel.actions.agents import agents
from carrel.actions.items import ItemWriteOptions, condition_for_version
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import LimitsModel, PolicyModel
from carrel.core import policy
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.items import person_items_scope
from carrel.core.policy import Limits
from carrel.core.store.event import EventFilter
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", [None, 0, 1])
async def test_of_two_writes_with_one_version_exactly_one_wins(
    anywhere: Ports, version: int | None
) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    await create_agent(ports, owner, "main", owner=owner.person)
    for turns in range(8):
        key = f"list {turns}"
        if version == 1:
            await items.put(ports, owner, "cook", key, "milk")
        won, lost = await race(
            items.put(
                ports,
                owner,
                "cook",
                key,
                "cook",
                ItemWriteOptions(condition_for_version(version), created_by="cook"),
            ),
            start_after_yields(
                turns,
                items.put(
                    ports,
                    owner,
                    "main",
                    key,
                    "main",
                    ItemWriteOptions(condition_for_version(version), created_by="main"),
                ),
            ),
        )
        stored = await items.get(ports, owner, "cook", key)
        if version is None:
            assert (len(won), lost) == (2, [])
            creator = min(won, key=lambda item: item.item.version).item.created_by
            assert stored.item.created_by == creator
            continue
        assert (len(won), [type(item) for item in lost]) == (1, [WorkspaceConflict])
        assert lost[0].current_version == stored.item.version == version + 1  # type: ignore[attr-defined]
        assert stored.value == won[0].value


async def test_an_item_keeps_its_creator_through_later_writes(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    await policies.put(ports, owner, PolicyModel(LimitsModel(max_versions=1)))
    first = (
        await items.put(ports, owner, "cook", "k", "0", ItemWriteOptions(created_by="agt_a"))
    ).item
    for n in range(1, 5):
        advance_clock(ports, 1000)
        again = (
            await items.put(ports, owner, "cook", "k", str(n), ItemWriteOptions(created_by="agt_b"))
        ).item
        assert (again.created_by, again.created_at) == ("agt_a", first.created_at)
        assert again.updated_at > first.updated_at
    await items.delete(ports, owner, "cook", "k")
    anew = (
        await items.put(ports, owner, "cook", "k", "new", ItemWriteOptions(created_by="agt_b"))
    ).item
    assert (anew.created_by, anew.version) == ("agt_b", 7)


async def test_items_belong_to_the_owner_else_the_human_else_the_caller(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, _ = await add_person(ports, ada, "bob")
    eve, as_eve = await add_person(ports, ada, "eve")
    owned = await create_agent(ports, ada, "owned", owner=bob.id, human=eve.id)
    await create_agent(ports, ada, "paired", human=eve.id)
    unowned = await create_agent(ports, ada, "unowned")
    for name in ("owned", "paired", "unowned"):
        await items.put(ports, ada, name, "from", name)
    for person, expected in ((bob.id, "owned"), (eve.id, "paired"), (ada.person or "", "unowned")):
        [tree] = await ports.trees.read((person_items_scope(ada.tenant, person),))
        assert len(tree.heads) == 1, expected
    assert await read_items(ports, as_eve, "paired") == {"from": "paired"}
    assert await read_items(ports, as_eve, "owned") == {"from": "owned"}
    with pytest.raises(Forbidden):
        await items.list_items(ports, as_eve, "unowned")
    unowned_actor = await actor_of_agent(ports, ada, unowned)
    with pytest.raises(Conflict, match="ownerId"):
        await items.put(ports, unowned_actor, "unowned", "k", "v")
    assert await read_items(ports, await actor_of_agent(ports, ada, owned), "owned") == {
        "from": "owned"
    }


async def test_items_stay_when_an_agent_becomes_shared_or_private(
    ports: Ports,
) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    await create_agent(ports, owner, "main", owner=owner.person)
    await items.put(ports, owner, "cook", "private", "p")
    await agents.patch(ports, owner, "cook", {"is_shared": True})
    assert await read_items(ports, owner, "cook") == {}
    await items.put(ports, owner, "cook", "shared", "s")
    assert await read_items(ports, owner, "main") == {"private": "p"}
    await agents.patch(ports, owner, "cook", {"is_shared": False})
    assert await read_items(ports, owner, "cook") == {"private": "p"}


async def test_publishing_is_refused_with_the_first_applicable_reason(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, stranger = await create_tenant(ports, "globex")
    await create_agent(ports, stranger, "theirs", is_shared=True)
    await create_agent(ports, owner, "mine", owner=owner.person)
    await create_agent(ports, owner, "other", owner=owner.person)
    front = await create_agent(ports, owner, "front", is_shared=True)
    await create_agent(ports, owner, "till", is_shared=True)

    async def publish(agent: str, key: str, target: str, target_key: str = "") -> str:
        try:
            to, stored = await items.publish(
                ports, owner, agent, key, target, target_key=target_key
            )
        except (NotFound, Forbidden, ValidationError) as refused:
            return str(refused)
        return f"{to.id} {stored.item.key} {stored.value}"

    assert "no such agent: missing" in await publish("missing", "k", "nowhere")
    assert "cannot publish" in await publish("front", "k", "nowhere")
    assert "no such agent: nowhere" in await publish("mine", "k", "nowhere")
    assert "no such agent: theirs" in await publish("mine", "k", "theirs")
    assert "target is private" in await publish("mine", "k", "other")
    assert "no such item: 'k'" in await publish("mine", "k", "front")
    await items.put(ports, owner, "mine", "k", "v")
    assert await publish("mine", "k", "front") == f"{front.id} k v"
    assert await publish("mine", "k", "front", target_key="a/b") == f"{front.id} a/b v"
    assert "control" in await publish("mine", "k", "front", target_key="a\n")
    await items.put(ports, owner, "mine", "k", "later")
    assert await read_items(ports, owner, "front") == {"k": "v", "a/b": "v"}
    await items.put(ports, owner, "front", "k", "theirs")
    assert await read_items(ports, owner, "mine") == {"k": "later"}
    assert "cannot publish" in await publish("front", "k", "till")


async def test_publishing_over_an_item_keeps_its_creator(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "mine", owner=owner.person)
    await create_agent(ports, owner, "front", is_shared=True)
    await items.put(ports, owner, "mine", "k", "new")
    await items.put(ports, owner, "front", "k", "old", ItemWriteOptions(created_by="agt_front"))
    _, stored = await items.publish(
        ports, owner, "mine", "k", "front", options=ItemWriteOptions(created_by="agt_mine")
    )
    assert (stored.value, stored.item.created_by, stored.item.version) == ("new", "agt_front", 2)


async def test_secrets_are_redacted_in_values_and_refused_in_keys(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    await secrets.put(ports, owner, "door", "opensesame/é")
    stored = await items.put(ports, owner, "cook", "k", "say opensesame/é to it")
    assert stored.value == "say [REDACTED:door] to it"
    assert (await items.get(ports, owner, "cook", "k")).value == stored.value
    for key in ("opensesame/é", "x" * 200 + "opensesame/é" + "é" * 20):
        with pytest.raises(ValidationError, match="secret"):
            await items.put(ports, owner, "cook", key, "v")


async def test_the_number_of_items_is_limited(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "ITEM_LIMITS", Limits(policy.ITEM_LIMITS.max_file_bytes, 2))
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    for key in ("a", "b"):
        await items.put(ports, owner, "cook", key, "v")
    with pytest.raises(WorkspaceTooLarge, match="items"):
        await items.put(ports, owner, "cook", "c", "v")
    await items.put(ports, owner, "cook", "a", "again")
    await items.delete(ports, owner, "cook", "b")
    await items.put(ports, owner, "cook", "c", "v")


async def test_a_write_emits_an_event_without_the_value(
    ports: Ports,
) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    start = await ports.events.latest_cursor()
    await items.put(ports, owner, "cook", "a/b", "canary")
    [event] = await ports.events.read_after(start, EventFilter(owner.tenant))
    assert (event.type, event.payload["version"]) == ("workspace.updated", 1)
    assert "canary" not in str(event)
    with pytest.raises(NotFound, match="run"):
        await items.put(ports, owner, "cook", "a/b", "x", ItemWriteOptions(run="run_0"))


async def test_items_are_listed_in_pages_with_the_last_written_first(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    for key in ("a/1", "b", "a/2", "c"):
        await items.put(ports, owner, "cook", key, key * 60)
    await items.put(ports, owner, "cook", "b", "again")
    keys_listed, cursor = [], ""
    while True:
        page = await items.list_items(ports, owner, "cook", cursor=cursor, limit=2)
        keys_listed += [row.item.key for row in page.items]
        assert page.total == (None if cursor else 4)
        if page.next is None:
            break
        cursor = page.next
    assert keys_listed == ["b", "c", "a/2", "a/1"]
    matching = await items.list_items(ports, owner, "cook", prefix="a/")
    assert [row.preview for row in matching.items] == [
        ("a/2" * 60)[:100] + "...",
        "a/1" * 33 + "a...",
    ]
    with pytest.raises(ValidationError):
        await items.list_items(ports, owner, "cook", cursor="x")


async def test_a_writer_that_always_loses_the_race_gets_busy(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook", owner=owner.person)
    read = ports.trees.read

    class RacingTrees:
        """Trees where another write follows every read."""

        def __getattr__(self, name: str) -> object:
            return getattr(ports.trees, name)

        async def read(self, *args: object, **options: object) -> object:
            trees = await read(*args, **options)  # type: ignore[arg-type]
            await items.put(ports, owner, "cook", "k", "theirs")
            return trees

    racing = replace(ports, trees=RacingTrees(), store=object())  # type: ignore[arg-type]
    with pytest.raises(Busy, match="'k'"):
        await items.put(racing, owner, "cook", "k", "mine")


async def test_concurrent_writes_without_a_version_all_succeed(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await create_agent(ports, owner, "cook")
    many = range(40)
    await asyncio.gather(*(items.put(ports, owner, "cook", "list", str(n)) for n in many))
    versions = [(await items.get(ports, owner, "cook", "list", n + 1)).value for n in many]
    assert sorted(versions, key=int) == [str(n) for n in many]
