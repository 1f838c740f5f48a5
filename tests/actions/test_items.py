"""Shared items on every store: who shares what with whom, and who wins of two that write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path as File
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.stores import advance_clock, open_ports
from tests.support.tenants import add_person, create_tenant, race, start_after_yields

from carrel.actions import items
from carrel.actions.accounts import credentials, keys, secrets
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.events import streams
from carrel.actions.items import ItemWriteOptions, condition_for_version
from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsModel, PolicyModel
from carrel.actions.runs import runs
from carrel.core import policy
from carrel.core.access import Actor, CredentialKind
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import ScopeKind
from carrel.core.items import person_items_scope
from carrel.core.policy import Limits
from carrel.core.store.event import WORKSPACE_UPDATED, EventFilter
from carrel.core.store.record import Record
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def hired(ports: Ports, author: Actor, slug: str, /, **facts: object) -> Record:
    new = replace(NewAgent(slug, slug), **facts)  # type: ignore[arg-type]
    return await agents.create(ports, author, new)


async def bound(ports: Ports, owner: Actor, agent: Record) -> Actor:
    """An agent, as its own key shows it."""
    issued = await keys.create(ports, owner, KeySpec("own", CredentialKind.AGENT, agent=agent.id))
    return await credentials.authenticate(ports, issued.token)


async def all_of(ports: Ports, actor: Actor, agent: str) -> dict[str, str]:
    rows = (await items.list_items(ports, actor, agent)).items
    return {
        row.item.key: (await items.get(ports, actor, agent, row.item.key)).value for row in rows
    }


@pytest.mark.parametrize("version", [None, 0, 1])
async def test_of_two_that_write_what_both_have_read_one_wins(
    anywhere: Ports, version: int | None
) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    await hired(ports, owner, "main", owner=owner.person)
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
        kept = await items.get(ports, owner, "cook", key)
        if version is None:
            assert (len(won), lost) == (2, [])
            creator = min(won, key=lambda one: one.item.version).item.created_by
            assert kept.item.created_by == creator
            continue
        assert (len(won), [type(one) for one in lost]) == (1, [WorkspaceConflict])
        assert lost[0].current_version == kept.item.version == version + 1  # type: ignore[attr-defined]
        assert kept.value == won[0].value


async def test_an_item_keeps_its_creator_however_often_it_is_written(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
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


async def test_an_item_is_whose_the_owner_else_the_human_else_the_caller_is(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, _ = await add_person(ports, ada, "bob")
    eve, as_eve = await add_person(ports, ada, "eve")
    owned = await hired(ports, ada, "owned", owner=bob.id, human=eve.id)
    await hired(ports, ada, "paired", human=eve.id)
    nobodys = await hired(ports, ada, "nobodys")
    for name in ("owned", "paired", "nobodys"):
        await items.put(ports, ada, name, "from", name)
    for person, seen in ((bob.id, "owned"), (eve.id, "paired"), (ada.person or "", "nobodys")):
        [tree] = await ports.trees.read((person_items_scope(ada.tenant, person),))
        assert len(tree.heads) == 1, seen
    assert await all_of(ports, as_eve, "paired") == {"from": "paired"}
    assert await all_of(ports, as_eve, "nobodys") == {"from": "paired"}
    with pytest.raises(Forbidden):
        await items.list_items(ports, as_eve, "owned")
    alone = await bound(ports, ada, nobodys)
    with pytest.raises(Conflict, match="ownerId"):
        await items.put(ports, alone, "nobodys", "k", "v")
    assert await all_of(ports, await bound(ports, ada, owned), "owned") == {"from": "owned"}


async def test_items_stay_where_they_are_when_an_agent_is_shared_or_no_longer(
    ports: Ports,
) -> None:
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    await hired(ports, owner, "main", owner=owner.person)
    await items.put(ports, owner, "cook", "private", "p")
    await agents.patch(ports, owner, "cook", {"isShared": True})
    assert await all_of(ports, owner, "cook") == {}
    await items.put(ports, owner, "cook", "shared", "s")
    assert await all_of(ports, owner, "main") == {"private": "p"}
    await agents.patch(ports, owner, "cook", {"isShared": False})
    assert await all_of(ports, owner, "cook") == {"private": "p"}


async def test_publishing_is_refused_for_the_first_reason_there_is(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, stranger = await create_tenant(ports, "globex")
    await hired(ports, stranger, "theirs", is_shared=True)
    await hired(ports, owner, "mine", owner=owner.person)
    await hired(ports, owner, "other", owner=owner.person)
    desk = await hired(ports, owner, "desk", is_shared=True)
    await hired(ports, owner, "till", is_shared=True)

    async def published(agent: str, key: str, target: str, target_key: str = "") -> str:
        try:
            to, kept = await items.publish(ports, owner, agent, key, target, target_key=target_key)
        except (NotFound, Forbidden, ValidationError) as refused:
            return str(refused)
        return f"{to.id} {kept.item.key} {kept.value}"

    assert "no such agent: nobody" in await published("nobody", "k", "nowhere")
    assert "cannot publish" in await published("desk", "k", "nowhere")
    assert "no such agent: nowhere" in await published("mine", "k", "nowhere")
    assert "no such agent: theirs" in await published("mine", "k", "theirs")
    assert "target is private" in await published("mine", "k", "other")
    assert "no such item: 'k'" in await published("mine", "k", "desk")
    await items.put(ports, owner, "mine", "k", "v")
    assert await published("mine", "k", "desk") == f"{desk.id} k v"
    assert await published("mine", "k", "desk", target_key="a/b") == f"{desk.id} a/b v"
    assert "control" in await published("mine", "k", "desk", target_key="a\n")
    await items.put(ports, owner, "mine", "k", "later")
    assert await all_of(ports, owner, "desk") == {"k": "v", "a/b": "v"}
    await items.put(ports, owner, "desk", "k", "theirs")
    assert await all_of(ports, owner, "mine") == {"k": "later"}
    assert "cannot publish" in await published("desk", "k", "till")


async def test_what_is_published_over_an_item_keeps_its_creator(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "mine", owner=owner.person)
    await hired(ports, owner, "desk", is_shared=True)
    await items.put(ports, owner, "mine", "k", "new")
    await items.put(ports, owner, "desk", "k", "old", ItemWriteOptions(created_by="agt_desk"))
    _, kept = await items.publish(
        ports, owner, "mine", "k", "desk", options=ItemWriteOptions(created_by="agt_mine")
    )
    assert (kept.value, kept.item.created_by, kept.item.version) == ("new", "agt_desk", 2)


async def test_secrets_stand_in_no_value_no_key_and_no_history(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    await secrets.put(ports, owner, "door", "opensesame/é")
    kept = await items.put(ports, owner, "cook", "k", "say opensesame/é to it")
    assert kept.value == "say [REDACTED:door] to it"
    assert (await items.get(ports, owner, "cook", "k")).value == kept.value
    for key in ("opensesame/é", "x" * 200 + "opensesame/é" + "é" * 20):
        with pytest.raises(ValidationError, match="secret"):
            await items.put(ports, owner, "cook", key, "v")


async def test_there_is_room_for_so_many_items_and_no_more(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "ITEM_LIMITS", Limits(policy.ITEM_LIMITS.max_file_bytes, 2))
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    for key in ("a", "b"):
        await items.put(ports, owner, "cook", key, "v")
    with pytest.raises(WorkspaceTooLarge, match="items"):
        await items.put(ports, owner, "cook", "c", "v")
    await items.put(ports, owner, "cook", "a", "again")
    await items.delete(ports, owner, "cook", "b")
    await items.put(ports, owner, "cook", "c", "v")


async def test_a_write_is_an_event_without_a_value_also_in_the_log_of_its_run(
    ports: Ports,
) -> None:
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    start = await ports.events.latest_cursor()
    await items.put(ports, owner, "cook", "a/b", "canary")
    [event] = await ports.events.read_after(start, EventFilter(owner.tenant))
    assert (event.type, event.payload["version"]) == ("workspace.updated", 1)
    assert "canary" not in str(event)
    with pytest.raises(NotFound, match="run"):
        await items.put(ports, owner, "cook", "a/b", "x", ItemWriteOptions(run="run_0"))


async def test_a_list_has_pages_and_the_last_written_comes_first(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    for key in ("a/1", "b", "a/2", "c"):
        await items.put(ports, owner, "cook", key, key * 60)
    await items.put(ports, owner, "cook", "b", "again")
    found, cursor = [], ""
    while True:
        page = await items.list_items(ports, owner, "cook", cursor=cursor, limit=2)
        found += [row.item.key for row in page.items]
        if page.next is None:
            break
        cursor = page.next
    assert found == ["b", "c", "a/2", "a/1"]
    some = await items.list_items(ports, owner, "cook", prefix="a/")
    assert [row.preview for row in some.items] == [("a/2" * 60)[:100] + "...", "a/1" * 33 + "a..."]
    with pytest.raises(ValidationError):
        await items.list_items(ports, owner, "cook", cursor="x")


async def test_one_whom_others_always_overtake_is_told_so(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook", owner=owner.person)
    read = ports.trees.read

    class Hurried:
        """Trees in which somebody else writes after every look."""

        def __getattr__(self, name: str) -> object:
            return getattr(ports.trees, name)

        async def read(self, *args: object, **more: object) -> object:
            found = await read(*args, **more)  # type: ignore[arg-type]
            await items.put(ports, owner, "cook", "k", "theirs")
            return found

    hurried = replace(ports, trees=Hurried())  # type: ignore[arg-type]
    with pytest.raises(Busy, match="'k'"):
        await items.put(hurried, owner, "cook", "k", "mine")


PEOPLE = ("ada", "bob", "eve")
PLACES = st.lists(st.tuples(st.sampled_from(PEOPLE), st.booleans()), min_size=2, max_size=6)


@given(PLACES)
@settings(max_examples=25, deadline=None)
def test_a_canary_is_seen_by_those_who_share_it_and_by_nobody_else(
    places: Sequence[tuple[str, bool]],
) -> None:
    async def scene() -> None:
        with TemporaryDirectory() as directory:
            async with open_ports(File(directory)) as ports:
                await _boundary(ports, places)

    asyncio.run(scene())


async def _boundary(ports: Ports, places: Sequence[tuple[str, bool]]) -> None:
    """Each agent, shared or a person's, writes what only those of its own home may see."""
    _, owner = await create_tenant(ports)
    known = {name: (await add_person(ports, owner, name))[0].id for name in PEOPLE}
    staff: list[tuple[Record, Actor, str]] = []
    for n, (person, shared) in enumerate(places):
        agent = await hired(ports, owner, f"a{n}", owner=known[person], is_shared=shared)
        home = agent.id if shared else person
        staff.append((agent, await bound(ports, owner, agent), home))
    for agent, actor, _ in staff:
        await items.put(ports, actor, agent.id, f"of {agent.id}", f"canary {agent.id}")
    for agent, actor, home in staff:
        seen = await all_of(ports, actor, agent.id)
        mates = [other.id for other, _, its in staff if its == home]
        assert seen == {f"of {mate}": f"canary {mate}" for mate in mates}
        for other, _, its in staff:
            if its != home:
                with pytest.raises(NotFound):
                    await items.get(ports, actor, agent.id, f"of {other.id}")
                with pytest.raises(NotFound):
                    await items.delete(ports, actor, agent.id, f"of {other.id}")
            if other.id != agent.id:
                with pytest.raises(NotFound):
                    await items.list_items(ports, actor, other.id)


async def test_nobody_else_hears_what_a_person_s_items_are_called(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    ann, as_ann = await add_person(ports, owner, "ann")
    _, as_bob = await add_person(ports, owner, "bob")
    await hired(ports, owner, "cook", owner=ann.id)
    await hired(ports, owner, "desk", is_shared=True)
    await items.put(ports, as_ann, "cook", "diagnosis", "x")
    await items.put(ports, as_ann, "desk", "for-all", "x")

    async def heard(actor: Actor) -> set[str]:
        types = frozenset({WORKSPACE_UPDATED})
        _, batches = await streams.listen_to_tenant(ports, actor, types, streams.FROM_START)
        async with aclosing(batches):
            scopes = [event.scope for event in await anext(batches) if event.scope]
        return {scope.name for scope in scopes if scope.kind is ScopeKind.ITEMS}

    mine = {person_items_scope(owner.tenant, ann.id).name}
    public = await heard(as_bob)
    assert public and not public & mine
    assert await heard(owner) == await heard(as_ann) == public | mine


async def test_nor_does_the_log_of_a_run_tell_them(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    ann, as_ann = await add_person(ports, owner, "ann")
    _, as_bob = await add_person(ports, owner, "bob")
    cook = await hired(ports, owner, "cook", owner=ann.id)
    run = await runs.start(ports, as_ann, runs.RunRequest("w", agent=cook.id))
    await items.put(ports, as_ann, "cook", "diagnosis", "x", ItemWriteOptions(run=run.id))

    async def told(actor: Actor) -> list[tuple[str, ...]]:
        found, _, whole = await streams.read_run_page(ports, actor, run, streams.FROM_START)
        _, batches = await streams.listen_to_run(ports, actor, run)
        async with aclosing(batches):
            heard = await anext(batches)
        assert whole
        return [tuple(event.type for event in some) for some in (found, heard)]

    assert await told(as_ann) == await told(owner) == [("run.started", WORKSPACE_UPDATED)] * 2
    assert await told(as_bob) == [("run.started",)] * 2


async def test_of_many_who_say_no_version_every_one_writes(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await hired(ports, owner, "cook")
    many = range(40)
    await asyncio.gather(*(items.put(ports, owner, "cook", "list", str(n)) for n in many))
    versions = [(await items.get(ports, owner, "cook", "list", n + 1)).value for n in many]
    assert sorted(versions, key=int) == [str(n) for n in many]
