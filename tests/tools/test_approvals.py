"""Calls that wait for somebody's yes: asked about once, answered once, run once or never."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.actions.cast import joined, later, rivals
from tests.tools.commands import HERE, SANDBOX, SHARED, kept, sandbox, standing_in
from tests.tools.room import Room, furnished, running
from tests.worlds import travel

from carrel.actions import agents, approvals, audits, keys, runs, secrets, sessions
from carrel.actions.sessions import Said
from carrel.core.access import Permission, Role
from carrel.core.approval import Approval, Status
from carrel.core.errors import Forbidden, Gone, InFlight, Malformed, Missing, Taken
from carrel.core.event import APPROVALS, Filter
from carrel.core.record import Noun
from carrel.ports import World
from carrel.ports.asking import DAY
from carrel.tools.resuming import close_if_dead

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def room(anywhere: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    yield await furnished(anywhere, standing_in(monkeypatch))


async def test_a_call_waits_for_a_yes_and_then_runs_as_it_was_given(room: Room) -> None:
    async with running(room.world):
        reply = await room.bash("rm -r old")
        one = reply.approval
        assert one is not None
        assert one.id in reply.content
        assert (one.status, one.shown, one.sandbox) == (
            Status.REQUESTED,
            {"command": "rm -r old"},
            SANDBOX,
        )
        assert room.shell.ran == []
        said = await room.answer(one, reason="fine")
        assert (said.status, said.answered_by, said.reason) == (
            Status.APPROVED,
            room.ada.name,
            "fine",
        )
        done = await room.ended(one)
    assert done.status is Status.FINISHED
    assert done.told is not None
    assert (done.told.content, done.told.is_error) == ("ran rm -r old", False)
    assert room.shell.ran == ["rm -r old"]


async def test_it_runs_by_the_rights_of_whoever_asked(room: Room) -> None:
    async with running(room.world):
        one = await room.asked()
        await room.answer(one)
        await room.ended(one)
    assert room.shell.by == [room.kate]


async def test_who_asked_what_who_answered_and_what_came_of_it_stands_in_the_audit(
    room: Room,
) -> None:
    async with running(room.world):
        one = await room.asked()
        await room.answer(one)
        await room.ended(one)
    deeds = (await audits.listing(room.world, room.ada)).items
    mine = [(d.by, d.why) for d in reversed(deeds) if f"approval/{one.id}" in d.subjects]
    assert mine == [
        (room.kate.name, "ask to run bash"),
        (room.ada.name, "approve a call of bash"),
        ("carrel", "run a call of bash"),
        ("carrel", "finish a call of bash"),
    ]


async def test_events_tell_of_it_in_the_log_of_its_run_too(room: Room) -> None:
    run = await runs.start(room.world, room.ada, runs.Start(agent="kate"))
    async with running(room.world):
        one = await room.asked("echo canary", run=run.id, by=room.ada)
        await room.answer(one, reason="canary")
        await room.ended(one)
        no = await room.asked("echo canary")
        await room.answer(no, False)
    wanted = Filter(room.ada.tenant, types=frozenset(APPROVALS))
    told = await room.world.events.after(None, wanted)
    about = [(event.type, event.payload["status"]) for event in told]
    assert about == [
        ("approval.requested", "requested"),
        ("approval.answered", "approved"),
        ("approval.finished", "finished"),
        ("approval.requested", "requested"),
        ("approval.answered", "denied"),
    ]
    assert "canary" not in str(told)
    log = await room.world.events.after(None, Filter(room.ada.tenant, run=run.id))
    assert [event.type for event in log] == ["run.started", *APPROVALS]
    assert [event.sequence for event in log] == [1, 2, 3, 4]


async def test_what_is_denied_never_runs_and_the_model_is_told_why(room: Room) -> None:
    async with running(room.world):
        one = await room.asked(call="c1")
        await room.answer(one, False, reason="not on Fridays")
        with pytest.raises(Taken):
            await room.answer(one, True)
        told = await room.bash(call="c1")
        await look_around(room)
    assert (told.content, told.is_error) == ("Error: denied by a person: not on Fridays", True)
    assert room.shell.ran == []


async def look_around(room: Room) -> None:
    """Have whoever runs what is approved look at everything there is, twice."""
    for _ in range(2):
        other = await room.asked("other")
        await room.answer(other)
        await room.ended(other)
    assert room.shell.ran[-2:] == ["other", "other"]
    del room.shell.ran[-2:], room.shell.by[-2:]


async def test_what_nobody_answers_in_time_never_runs(room: Room) -> None:
    late, seen = await room.asked("late"), await room.asked("seen")
    travel(room.world, DAY)
    with pytest.raises(Gone):
        await room.answer(late)
    assert (await room.look(late)).status is Status.EXPIRED
    async with running(room.world):
        assert (await room.ended(seen)).status is Status.EXPIRED
        await look_around(room)
    with pytest.raises(Gone):
        await room.answer(seen, False)
    assert room.shell.ran == []


async def test_a_person_who_says_something_else_makes_it_void(room: Room) -> None:
    talk = await sessions.start(room.world, room.kate, "kate")
    other = await sessions.start(room.world, room.kate, "kate")
    async with running(room.world):
        one = await room.asked(session=talk.id, call="c1")
        stays = await room.asked(session=other.id)
        note = [Said("assistant", "I asked")]
        await sessions.append(room.world, room.kate, "kate", talk.id, note)
        assert (await room.look(one)).status is Status.REQUESTED
        await sessions.append(room.world, room.kate, "kate", talk.id, [Said("user", "wait")])
        assert (await room.look(one)).status is Status.CANCELLED
        assert (await room.look(stays)).status is Status.REQUESTED
        with pytest.raises(Taken):
            await room.answer(one)
        told = await room.bash(session=talk.id, call="c1")
        await look_around(room)
    assert (told.content, told.is_error) == ("not run: superseded", True)
    assert room.shell.ran == []


async def test_so_it_does_where_the_yes_came_a_moment_before(room: Room) -> None:
    talk = await sessions.start(room.world, room.kate, "kate")
    one = await room.asked(session=talk.id)
    await room.answer(one)
    await sessions.append(room.world, room.kate, "kate", talk.id, [Said("user", "wait")])
    async with running(room.world):
        done = await room.ended(one)
    assert (done.status, done.reason, room.shell.ran) == (Status.CANCELLED, "superseded", [])


async def gone_agent(room: Room) -> None:
    await agents.delete(room.world, room.ada, "kate")


async def gone_sandbox(room: Room) -> None:
    await sandbox(room.world, room.ada.tenant, None)


async def changed_sandbox(room: Room) -> None:
    await sandbox(room.world, room.ada.tenant, "ask", internet=True)


async def other_sandbox(room: Room) -> None:
    other = "sb_" + "1" * 24
    await kept(room.world, room.ada.tenant, Noun.SANDBOX, other, {"permissionMode": "ask"})
    await agents.patch(room.world, room.ada, "kate", {"config": {"sandbox": other}})


async def other_workspace(room: Room) -> None:
    await kept(room.world, room.ada.tenant, Noun.WORKSPACE, SHARED, {})
    attached = [{"name": "docs", "workspaceId": SHARED}]
    await agents.patch(room.world, room.ada, "kate", {"config": {**HERE, "workspaces": attached}})


async def no_tool(room: Room) -> None:
    await agents.patch(room.world, room.ada, "kate", {"config": {**HERE, "allowedTools": ["no"]}})


async def no_key(room: Room) -> None:
    await keys.revoke(room.world, room.ada, room.kate.key)


CHANGES = [
    (gone_agent, "there is no agent"),
    (gone_sandbox, f"Referenced sandbox not found: {SANDBOX}"),
    (changed_sandbox, f"sandbox {SANDBOX} has changed"),
    (other_sandbox, f"not {SANDBOX}"),
    (other_workspace, f"workspace {SHARED}"),
    (no_tool, "this agent has no tool 'bash'"),
    (no_key, "the credential that asked for it is there no more"),
]


@pytest.mark.parametrize(("change", "named"), CHANGES, ids=lambda one: getattr(one, "__name__", ""))
async def test_what_it_rests_on_has_changed_and_it_never_runs(
    room: Room, change: Any, named: str
) -> None:
    one = await room.asked()
    await change(room)
    async with running(room.world):
        await room.answer(one)
        done = await room.ended(one)
    assert done.status is Status.CANCELLED
    assert named in done.reason
    assert done.told is not None
    assert done.told.content == f"not run: {done.reason}"
    assert room.shell.ran == []


@pytest.mark.parametrize("turns", range(0, 40, 4))
async def test_a_change_while_it_is_taken_is_seen(room: Room, turns: int) -> None:
    one = await room.asked()
    async with running(room.world):
        change = later(turns, changed_sandbox(room))
        await asyncio.gather(room.answer(one), change)
        done = await room.ended(one)
    assert (done.status, room.shell.ran) in [
        (Status.CANCELLED, []),
        (Status.FINISHED, ["ls"]),
    ]


async def test_of_many_who_answer_at_once_one_is_heard(room: Room) -> None:
    bosses = [(await joined(room.world, room.ada, f"boss-{n}", Role.ADMIN))[1] for n in range(4)]
    async with running(room.world, room.world, room.world):
        for turn in range(4):
            one = await room.asked(f"turn {turn}")
            answers = [(boss, n % 2 == 0) for n, boss in enumerate(bosses * 3)]
            heard, refused = await rivals(
                *(room.answer(one, yes, by=boss) for boss, yes in answers)
            )
            assert {type(why) for why in refused} <= {Taken}
            assert len({said.answered_by for said in heard}) == 1
            assert {said.answer for said in heard} == {heard[0].answer}
            assert len(heard) == 6
            done = await room.ended(one)
            assert done.status is (Status.FINISHED if heard[0].answer else Status.DENIED)
            assert room.shell.ran.count(f"turn {turn}") == (1 if heard[0].answer else 0)


async def test_of_many_processes_one_runs_it(room: Room) -> None:
    ones = [await room.asked(f"n {n}") for n in range(6)]
    for one in ones:
        await room.answer(one)
    async with running(*[room.world] * 4):
        for one in ones:
            assert (await room.ended(one)).status is Status.FINISHED
    assert sorted(room.shell.ran) == [f"n {n}" for n in range(6)]


async def test_what_was_begun_by_a_process_that_died_is_not_begun_again(room: Room) -> None:
    one = await room.asked("hold")
    await room.answer(one)
    world, dead = room.world, Dead()
    zombie = replace(world, trees=dead.port(world.trees), records=dead.port(world.records))
    async with running(zombie):
        await room.shell.held.wait()
        dead.set()
        assert (await room.look(one)).status is Status.RUNNING
        async with running(world):
            await look_around(room)
            assert (await room.look(one)).status is Status.RUNNING
        travel(world, world.asking.lease + 1)
        async with running(world):
            done = await room.ended(one)
            await look_around(room)
        room.shell.go_on.set()
    assert done.told is not None
    assert (done.status, done.told.is_error) == (Status.FINISHED, True)
    assert "interrupted" in done.told.content
    assert await room.look(one) == done
    assert room.shell.ran == ["hold"]


class Dead:
    """Makes ports that nothing comes through any more, once it is set."""

    def __init__(self) -> None:
        self._dead = False

    def set(self) -> None:
        self._dead = True

    def port(self, port: Any) -> Any:
        outer = self

        class Port:
            def __getattr__(self, name: str) -> Any:
                if outer._dead:
                    raise ConnectionError("dead")
                return getattr(port, name)

        return Port()


async def test_a_long_call_shows_signs_of_life(room: Room) -> None:
    quick = replace(room.world, asking=replace(room.world.asking, lease=60))
    one = await room.asked("hold")
    await room.answer(one)
    async with running(quick):
        seen = set[int | None]()
        async with asyncio.timeout(30):
            while len(seen) < 4:
                seen.update(await room.world.records.last_used([one.id]))
                await asyncio.sleep(0.01)
        room.shell.go_on.set()
        done = await room.ended(one)
    assert done.told is not None
    assert done.told.content == "ran hold"


async def test_a_sign_of_life_keeps_others_from_giving_a_call_up(room: Room) -> None:
    one = await room.asked("hold")
    await room.answer(one)
    async with running(room.world):
        await room.shell.held.wait()
        [record] = await room.world.records.get(room.ada.tenant, Noun.APPROVAL, [one.id])
        assert record is not None
        travel(room.world, room.world.asking.lease)
        await room.world.records.used({one.id: room.world.clock.now()})
        travel(room.world, room.world.asking.lease // 2)
        await close_if_dead(room.world, record)
        assert (await room.look(one)).status is Status.RUNNING
        travel(room.world, room.world.asking.lease)
        await close_if_dead(room.world, record)
        assert (await room.look(one)).status is Status.FINISHED
        room.shell.go_on.set()
    told = (await room.look(one)).told
    assert told is not None
    assert "interrupted" in told.content


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("refuse", "Error: nothing of that name"),
        ("break", "Error: something went wrong here, and it is not run again"),
    ],
)
async def test_what_goes_wrong_is_told_and_not_tried_again(
    room: Room, command: str, content: str
) -> None:
    async with running(room.world):
        one = await room.asked(command)
        await room.answer(one)
        done = await room.ended(one)
        await look_around(room)
    assert done.told is not None
    assert (done.told.content, done.told.is_error) == (content, True)
    assert room.shell.ran == [command]


async def test_the_same_call_is_asked_about_and_done_once(room: Room) -> None:
    asked, refused = await rivals(*(room.asked("ls", call="c1") for _ in range(8)))
    assert not refused
    assert len({one.id for one in asked}) == 1
    with pytest.raises(Taken, match="another one"):
        await room.bash("ls -a", call="c1")
    assert (await room.asked("ls", call="c2")).id != asked[0].id
    async with running(room.world):
        await room.answer(asked[0])
        await room.ended(asked[0])
    told = [await room.bash("ls", call="c1") for _ in range(3)]
    assert {(one.content, one.approval) for one in told} == {("ran ls", None)}
    assert room.shell.ran == ["ls"]


async def test_a_call_that_nobody_is_asked_about_is_done_once_too(room: Room) -> None:
    await sandbox(room.world, room.ada.tenant, "bypass")
    told, refused = await rivals(*(room.bash("ls", call="c1") for _ in range(8)))
    assert {type(why) for why in refused} <= {InFlight}
    assert {one.content for one in told} == {"ran ls"}
    assert (await room.bash("ls", call="c1")).content == "ran ls"
    with pytest.raises(Taken, match="another one"):
        await room.bash("ls -a", call="c1")
    assert (await room.bash("json", call="c2")).structured == {"n": 1}
    assert (await room.bash("json", call="c2")).structured == {"n": 1}
    assert room.shell.ran == ["ls", "json"]
    await room.bash("ls")
    await room.bash("ls")
    assert room.shell.ran[2:] == ["ls", "ls"]


@pytest.mark.parametrize("call", ["", "x" * 201, "a\nb", "\x00", "\ud800"])
async def test_what_is_no_id_of_a_call_is_refused(room: Room, call: str) -> None:
    with pytest.raises(Malformed):
        await room.bash("ls", call=call)


async def test_nobody_is_asked_about_what_cannot_be_done(room: Room) -> None:
    for told, expected in [
        (await room.bash(" "), "Error: command must not be empty"),
        (await room.bash("ls", colour="red"), "Error: the arguments of bash do not fit"),
    ]:
        assert told.is_error
        assert told.approval is None
        assert told.content.startswith(expected)
    await kept(room.world, room.ada.tenant, Noun.WORKSPACE, SHARED, {})
    attached = [{"name": "docs", "workspaceId": SHARED, "sandbox": None}]
    both = [*attached, {"name": "code", "workspaceId": SHARED}]
    await agents.patch(room.world, room.ada, "kate", {"config": {**HERE, "workspaces": both}})
    assert (await room.bash("ls")).content == "Error: workspace is read-only"
    assert (await room.bash("ls", workspace="x")).content == "Error: unknown workspace x"
    assert (await room.bash("ls", workspace="code")).approval is not None
    assert len(await waiting(room)) == 1


async def waiting(room: Room) -> tuple[Approval, ...]:
    page = await approvals.listing(room.world, room.ada, status=Status.REQUESTED)
    return page.items


async def test_only_some_people_may_answer_and_never_the_agent(room: Room) -> None:
    one = await room.asked()
    _, member = await joined(room.world, room.ada, "bob")
    person, human = await joined(room.world, room.ada, "eve")
    owner_id, owner = await joined(room.world, room.ada, "tom")
    facts = {"humanPairId": person.id, "ownerId": owner_id.id}
    await agents.patch(room.world, room.ada, "kate", facts)
    reader = replace(room.ada, permissions=frozenset({Permission.WORKSPACE_READ}))
    for who in (room.kate, member, reader):
        for yes in (True, False):
            with pytest.raises(Forbidden):
                await room.answer(one, yes, by=who)
    assert (await room.answer(one, False, by=human)).status is Status.DENIED
    assert (await room.answer(await room.asked(), False, by=owner)).status is Status.DENIED


async def test_nobody_sees_or_answers_those_of_others(room: Room) -> None:
    one = await room.asked()
    await agents.create(room.world, room.ada, agents.NewAgent("marco", "Marco"))
    other = await furnished(room.world, room.shell, "globex")
    marco = replace(room.kate, agent=(await agents.get(room.world, room.ada, "marco")).id)
    for who in (other.ada, other.kate, marco, replace(room.ada, workspace="desk")):
        with pytest.raises(Missing):
            await approvals.get(room.world, who, one.id)
        with pytest.raises(Missing):
            await room.answer(one, by=who)
    assert (await approvals.listing(room.world, other.ada)).items == ()
    assert (await approvals.listing(room.world, marco)).items == ()
    assert (await approvals.listing(room.world, room.kate)).items == (await room.look(one),)
    with pytest.raises(Missing):
        await approvals.answer(room.world, room.ada, "apr_nothing", True)


async def test_they_are_listed_by_status_and_agent_page_by_page(room: Room) -> None:
    ones = [await room.asked(f"n {n}") for n in range(5)]
    await room.answer(ones[1], False)
    page = await approvals.listing(room.world, room.ada, status=Status.REQUESTED, limit=3)
    assert [one.id for one in page.items] == [ones[n].id for n in (0, 2, 3)]
    assert page.next is not None
    rest = await approvals.listing(
        room.world, room.ada, agent="kate", status=Status.REQUESTED, cursor=page.next
    )
    assert [one.id for one in rest.items] == [ones[4].id]
    with pytest.raises(Malformed):
        await approvals.listing(room.world, room.ada, cursor="agt_1")


async def test_no_secret_lies_open_and_what_runs_is_what_was_given(room: Room) -> None:
    await secrets.put(room.world, room.ada, "TOKEN", "zanzibar-zanzibar")
    async with running(room.world):
        one = await room.asked("echo zanzibar-zanzibar", call="c1")
        [record] = await room.world.records.get(room.ada.tenant, Noun.APPROVAL, [one.id])
        assert record is not None
        assert "zanzibar" not in str(record.body)
        await room.answer(one, reason="for zanzibar-zanzibar")
        done = await room.ended(one)
    assert "zanzibar" not in str(done)
    assert done.sealed == ""
    assert room.shell.ran == ["echo zanzibar-zanzibar"]
