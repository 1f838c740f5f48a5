"""A desk in one's own process, on a file and on PostgreSQL: the same actions, with names."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path as File
from typing import Any

import pytest

import carrel
from carrel.server.python import Carrel, EventStream, Limits, Policy

pytestmark = pytest.mark.anyio


async def paths(feed: EventStream, count: int) -> list[str]:
    return [(await anext(feed)).payload["path"] for _ in range(count)]


async def test_what_is_put_is_there_for_the_next_who_opens(where: str, tmp_path: File) -> None:
    async with carrel.open(where, data=str(tmp_path)) as desk:
        await desk.secrets.put("db", "hunter2hunter2")
        await desk.workspace().put("SOUL.md", "Be kind.")
    async with carrel.open(where, data=str(tmp_path)) as desk:
        assert (await desk.workspace().get("SOUL.md")).content == "Be kind."
        again = await desk.workspace().put("SOUL.md", "say hunter2hunter2")
        assert (again.version, again.content) == (2, "say [REDACTED:db]")


async def test_two_who_have_it_open_see_and_hear_each_other(where: str, tmp_path: File) -> None:
    async with (
        carrel.open(where, data=str(tmp_path)) as one,
        carrel.open(where, data=str(tmp_path)) as other,
        one.workspace().events() as feed,
    ):
        await other.workspace().put("a.md", "1")
        assert await asyncio.wait_for(paths(feed, 1), 30) == ["a.md"]
        assert (await one.workspace().get("a.md")).content == "1"


async def test_of_many_who_saw_the_same_exactly_one_wins(desk: Carrel) -> None:
    ws = desk.workspace()
    seen = await ws.put("a.md", "0")

    async def rival(text: str) -> bool:
        try:
            await ws.put("a.md", text, if_match=seen.etag)
        except carrel.WorkspaceConflict as refusal:
            assert refusal.current_version == 2
            return False
        return True

    assert sum(await asyncio.gather(*(rival(str(each)) for each in range(16)))) == 1


async def test_a_write_can_insist_that_nothing_or_something_is_there(desk: Carrel) -> None:
    ws = desk.workspace()
    with pytest.raises(carrel.WorkspaceConflict):
        await ws.put("a.md", "1", if_match="*")
    await ws.put("a.md", "1", if_absent=True)
    with pytest.raises(carrel.WorkspaceConflict):
        await ws.put("a.md", "2", if_absent=True)
    with pytest.raises(carrel.WorkspaceConflict):
        await ws.delete("a.md", if_match='"v9"')
    assert await ws.delete("a.md", if_match='"v1"', reason="no longer needed") == 2
    newest, _ = await ws.history("a.md")
    assert (newest.deleted, newest.reason, newest.author) == (
        True,
        "no longer needed",
        "in-process",
    )


async def test_workspaces_of_one_tenant_are_apart(desk: Carrel) -> None:
    await desk.workspace("team").put("a.md", "team")
    assert await desk.workspace().list() == ()
    run = await desk.workspace("team").start_run("nightly")
    assert [row.path for row in await run.workspace.list()] == ["a.md"]
    assert [each.id for each in await desk.workspace("team").runs()] == [run.id]
    assert await desk.workspace().runs() == ()
    with pytest.raises(carrel.NotFound):
        await desk.workspace().run(run.id)
    assert (await desk.run(run.id)).workflow == "nightly"
    assert [each.id for each in await desk.runs()] == [run.id]


async def test_tenants_are_apart(desk: Carrel) -> None:
    await desk.tenants.create("acme", "Acme", owner="Ann", email="ann@acme.example")
    acme = await desk.tenant("acme")
    await acme.workspace().put("a.md", "acme")
    run = await acme.workspace().start_run("nightly")
    assert await desk.workspace().list() == ()
    with pytest.raises(carrel.NotFound):
        await desk.run(run.id)
    assert (await acme.tenants.me()).slug == "acme"
    assert (await acme.tenants.rename("Acme & Co")).name == "Acme & Co"
    assert (await desk.tenants.me()).slug == "default"
    with pytest.raises(carrel.NotFound):
        await desk.tenant("nobody")


async def test_a_run_reads_what_was_there_when_it_began(desk: Carrel) -> None:
    ws = desk.workspace()
    await ws.put("AGENTS.md", "old")
    run = await ws.start_run("nightly", mode="shared")
    await ws.put("AGENTS.md", "new", run=run.id)
    await ws.put("SOUL.md", "b")
    assert (await run.workspace.get("AGENTS.md")).content == "old"
    assert [(each.path, each.kind, each.before, each.after) for each in await run.diff()] == [
        ("AGENTS.md", "changed", 1, 2),
        ("SOUL.md", "added", None, 1),
    ]
    assert "+new" in await run.diff_of("AGENTS.md")
    child = await run.start_child(share_snapshot=True)
    assert (child.parent, child.mode) == (run.id, "shared")
    assert (await child.workspace.get("AGENTS.md")).content == "old"
    await run.finish("failed")
    assert (run.status, run.ended_at is not None) == ("failed", True)
    twin = await run.replay()
    assert (await twin.workspace.get("AGENTS.md")).content == "old"
    assert twin.replay_of == run.id
    await run.release()
    with pytest.raises(carrel.NotFound):
        await run.workspace.get("AGENTS.md")
    assert (await (await desk.run(run.id)).refresh()).kept is False
    with pytest.raises(carrel.Conflict):
        await run.finish("completed")


async def test_a_feed_goes_on_after_a_time_out_and_loses_nothing(desk: Carrel) -> None:
    ws = desk.workspace()
    async with ws.events() as feed:
        for number in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(feed), 0.02)
            await ws.put(f"{number}.md", "x")
            assert await asyncio.wait_for(paths(feed, 1), 30) == [f"{number}.md"]


async def test_a_feed_tells_only_of_its_own_workspace(desk: Carrel) -> None:
    async with desk.workspace("team").events() as feed, desk.events() as all_of_it:
        await desk.workspace().put("a.md", "x")
        run = await desk.workspace("team").start_run("nightly")
        await desk.workspace("team").put("b.md", "x", run=run.id)
        told = await asyncio.wait_for(anext(feed), 30)
        assert (told.payload, told.workspace, told.run) == (
            {"path": "b.md", "version": 1},
            "workspace/team",
            run.id,
        )
        types = [(await asyncio.wait_for(anext(all_of_it), 30)).type for _ in range(3)]
        assert types == ["workspace.updated", "run.started", "workspace.updated"]


async def test_closing_the_desk_ends_whoever_listens(where: str, tmp_path: File) -> None:
    heard: list[str] = []

    async def listen(feed: EventStream) -> None:
        async for event in feed:
            heard.append(event.payload["path"])

    async with carrel.open(where, data=str(tmp_path)) as desk:
        ws = desk.workspace()
        feeds = [ws.events(since="0") for _ in range(3)]
        tasks = [asyncio.create_task(listen(feed)) for feed in feeds]
        idle = ws.events()
        await idle.start()
        await ws.put("a.md", "x")
        async with asyncio.timeout(30):
            while len(heard) < 3:
                await asyncio.wait(tasks, timeout=0.01)
    await asyncio.wait_for(asyncio.gather(*tasks), 30)
    assert heard == ["a.md"] * 3
    assert [event async for event in idle] == []


async def test_a_feed_says_at_once_that_its_cursor_is_none(desk: Carrel) -> None:
    with pytest.raises(carrel.ValidationError):
        await anext(desk.workspace().events(since="yesterday"))


async def test_what_is_no_text_is_refused(desk: Carrel) -> None:
    ws = desk.workspace()
    for content in (b"\xff\xfe", "\ud800"):
        with pytest.raises(carrel.ValidationError):
            await ws.put("a.md", content)
    for path in ("../a.md", "", "a//b", "a\x00b"):
        with pytest.raises(carrel.ValidationError):
            await ws.put(path, "x")
    with pytest.raises(carrel.ValidationError):
        await ws.put("a.md", "x", reason="two\nlines")
    with pytest.raises(carrel.ValidationError):
        desk.workspace("no such name/")


async def test_words_that_are_none_are_refused(desk: Carrel) -> None:
    with pytest.raises(carrel.ValidationError):
        await desk.people.create("Ann", "ann@example.com", "queen")
    with pytest.raises(carrel.ValidationError):
        await desk.keys.create("key", "passport")
    with pytest.raises(carrel.ValidationError):
        await desk.keys.create("key", scopes=["workspace:rule"])
    with pytest.raises(carrel.ValidationError):
        await desk.keys.create("key", expires_at=datetime(2100, 1, 1))
    with pytest.raises(carrel.ValidationError):
        await desk.workspace().start_run("nightly", mode="secret")
    run = await desk.workspace().start_run("nightly")
    with pytest.raises(carrel.ValidationError):
        await run.finish("finished")
    with pytest.raises(carrel.ValidationError):
        await desk.policy.put(Policy(limits=Limits(max_files=0)))


async def test_a_field_that_there_is_not_is_refused_by_name(desk: Carrel) -> None:
    await desk.templates.create("calm")
    await desk.agents.create("ada", template="calm")
    [owner] = await desk.people.list()
    before = (await desk.agents.get("ada"), await desk.templates.get("calm"))
    changes: list[Any] = [
        lambda **fields: desk.agents.change("ada", **fields),
        lambda **fields: desk.templates.change("calm", **fields),
        lambda **fields: desk.people.change(owner.id, **fields),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="there is no field 'foo'"):
            await change(name="Other", foo=1)
    with pytest.raises(TypeError, match="there is no field 'subject'"):
        await changes[2](subject="somebody")
    assert (await desk.agents.get("ada"), await desk.templates.get("calm")) == before
    assert await desk.people.list() == (owner,)


async def test_people_and_keys_come_and_go(desk: Carrel) -> None:
    ann = await desk.people.create("Ann", "ann@example.com", "admin", title="Librarian")
    ann = await desk.people.change(ann.id, role="owner", title=None)
    assert (ann.role, ann.title) == ("owner", None)
    assert await desk.people.get(ann.id) == ann
    soon = datetime.now(UTC) + timedelta(days=1)
    made = await desk.keys.create("laptop", "person", person=ann.id, expires_at=soon)
    assert made.key.expires_at is not None
    assert abs(made.key.expires_at - soon) < timedelta(milliseconds=1)
    assert {key.name for key in await desk.keys.list()} == {"owner", "laptop"}
    assert (await desk.keys.get(made.key.id)).last_used_at is None
    await desk.keys.revoke(made.key.id)
    await desk.people.delete(ann.id)
    [owner] = await desk.people.list()
    with pytest.raises(carrel.Conflict):
        await desk.people.delete(owner.id)
    reasons = [entry.reason for entry in await desk.audit(limit=2)]
    assert reasons == ["remove a person", "revoke a key"]


async def test_agents_stand_on_templates_on_defaults(desk: Carrel) -> None:
    await desk.templates.create("calm")
    made = await desk.agents.create("ada", "Ada", template="calm")
    await desk.defaults.put("A.md", "defaults")
    await desk.template("calm").put("B.md", "template")
    ada = desk.agent("ada")
    run = await ada.start_run()
    sources = {row.path: row.source for row in await ada.list() if row.path in {"A.md", "B.md"}}
    assert sources == {"A.md": "defaults", "B.md": "template"}
    await ada.put("B.md", "mine")
    explained = await ada.explain("B.md")
    assert explained.winner is not None
    assert (explained.winner.source.kind, len(explained.layers)) == ("agent", 3)
    assert (await run.workspace.get("B.md")).content == "template"
    assert [each.id for each in await ada.runs()] == [run.id]
    assert (await desk.agents.get(made.id), await desk.agents.list()) == (made, (made,))
    with pytest.raises(carrel.Conflict):
        await desk.templates.delete("calm")
    await desk.agents.delete("ada")
    await desk.templates.delete("calm")
    assert await desk.templates.list() == ()
    with pytest.raises(carrel.NotFound):
        await ada.list()


async def test_secrets_and_webhooks_are_listed_without_what_they_hide(desk: Carrel) -> None:
    kept = await desk.secrets.put("db", "hunter2hunter2")
    assert (await desk.secrets.list(), await desk.secrets.get("db")) == ((kept,), kept)
    await desk.secrets.delete("db")
    assert (await desk.workspace().put("a.md", "hunter2hunter2")).content == "hunter2hunter2"
    made = await desk.webhooks.create("https://93.184.216.34/hook", ["workspace.updated"])
    assert made.secret.startswith("whsec_")
    off = await desk.webhooks.change(made.webhook.id, active=False)
    assert (await desk.webhooks.list(), off.active) == ((off,), False)
    assert await desk.webhooks.get(off.id) == off
    await desk.webhooks.delete(off.id)
    assert await desk.webhooks.list() == ()
    with pytest.raises(carrel.ValidationError):
        await desk.webhooks.create("http://127.0.0.1/hook")


async def test_sandboxes_and_workspaces_are_described_shown_and_gone(desk: Carrel) -> None:
    box = await desk.sandboxes.create("usual", {"envVars": {"A": "hunter2"}}, description="ours")
    assert (box.name, box.description, box.config["envVars"]) == (
        *("usual", "ours"),
        {"A": "********"},
    )
    changed = await desk.sandboxes.change(box.id, config={"timeout": 9}, description=None)
    assert (changed.description, changed.config["timeout"]) == (None, 9)
    assert changed.config["envVars"] == {"A": "********"}
    assert await desk.sandboxes.list() == (await desk.sandboxes.get(box.id),) == (changed,)
    with pytest.raises(carrel.ValidationError, match=r"config.timeout"):
        await desk.sandboxes.change(box.id, config={"timeout": 0})
    with pytest.raises(TypeError):
        await desk.sandboxes.change(box.id, colour="green")  # type: ignore[call-arg]
    shared = await desk.workspaces.create("notes")
    assert shared.namespace.startswith("fs-")
    await desk.workspace(shared.id).put("a.md", "1")
    renamed = await desk.workspaces.change(shared.id, name="other")
    assert await desk.workspaces.list() == (await desk.workspaces.get(shared.id),) == (renamed,)
    await desk.workspaces.delete(shared.id)
    await desk.sandboxes.delete(box.id)
    with pytest.raises(carrel.NotFound):
        await desk.workspace(shared.id).get("a.md")
    assert (await desk.sandboxes.list(), await desk.workspaces.list()) == ((), ())
