"""Agents with their layers, prompts, sessions, memories, items and tools, over every driver."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

import carrel

pytestmark = pytest.mark.anyio
SESSION_ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"


async def test_agents_inherit_from_templates_and_defaults(api: Any) -> None:
    await api.templates.create("calm")
    created = await api.agents.create("ada", "Ada", template_id="calm")
    await api.defaults.put("A.md", "defaults")
    await api.template("calm").put("B.md", "template")
    ada = api.agent("ada")
    run = await ada.start_run()
    sources = {row.path: row.source for row in await ada.list() if row.path in {"A.md", "B.md"}}
    assert sources == {"A.md": "defaults", "B.md": "template"}
    await ada.put("B.md", "mine")
    explanation = await ada.explain("B.md")
    assert (explanation.source, len(explanation.layers)) == ("agent-override", 3)
    assert (await run.workspace.get("B.md")).content == "template"
    assert [listed.id for listed in await ada.runs()] == [run.id]
    assert (await ada.run(run.id)).agent_id == created.id
    assert (await api.agents.get(created.id), await api.agents.list()) == (created, (created,))
    assert (await api.templates.get("calm")).agent_count == 1


async def test_agents_and_templates_are_deleted(api: Any) -> None:
    await api.templates.create("calm")
    await api.agents.create("ada", template_id="calm")
    with pytest.raises(carrel.Conflict):
        await api.templates.create("calm")
    with pytest.raises(carrel.Conflict):
        await api.templates.delete("calm")
    await api.agents.delete("ada")
    await api.templates.delete("calm")
    assert await api.templates.list() == ()
    with pytest.raises(carrel.NotFound):
        await api.agent("ada").list()


async def test_pin_is_reviewed_accepted_and_rolled_back(api: Any) -> None:
    await api.templates.create("calm")
    calm, ada = api.template("calm"), api.agent("ada")
    await calm.put("GUARDRAILS.md", "one")
    for slug in ("ada", "bob"):
        await api.agents.create(slug, slug.title(), template_id="calm")
    await calm.put("GUARDRAILS.md", "two")
    assert (await calm.impact("GUARDRAILS.md")).pending_reviews == 2
    assert (await api.inbox()).counts["pins"] == 2
    [pin] = [pin for pin in await ada.pins() if pin.update_available]
    assert (pin.path, pin.pinned, pin.latest) == ("GUARDRAILS.md", "one", "two")
    with pytest.raises(carrel.WorkspaceConflict):
        await ada.accept("GUARDRAILS.md", pin.pinned_sha256)
    with pytest.raises(carrel.ValidationError):
        await ada.accept("GUARDRAILS.md", "two")
    await ada.accept("GUARDRAILS.md", pin.latest_sha256)
    assert (await ada.get("GUARDRAILS.md")).content == "two"
    outcomes = await calm.accept("GUARDRAILS.md", pin.latest_sha256)
    assert [outcome.changed for outcome in outcomes] == [False, True]
    assert (await ada.roll_back("GUARDRAILS.md")).pinned_sha256 == pin.pinned_sha256
    file = await ada.get("GUARDRAILS.md")
    assert (file.content, file.file_class, file.update_available) == ("one", "pinned", True)


async def test_default_is_accepted_and_rolled_back_for_all(api: Any) -> None:
    await api.templates.create("own")
    await api.template("own").put("GUARDRAILS.md", "its own")
    for slug, template in (("ada", None), ("bob", None), ("eve", "own")):
        await api.agents.create(slug, slug.title(), template_id=template)
    before = (await api.agent("ada").get("GUARDRAILS.md")).content
    await api.defaults.put("GUARDRAILS.md", "two")
    digest = hashlib.sha256(b"two").hexdigest()
    for change, content in ((api.defaults.accept, "two"), (api.defaults.roll_back, before)):
        outcomes = await change("GUARDRAILS.md", digest)
        assert [(outcome.success, outcome.changed) for outcome in outcomes] == [(True, True)] * 2
        for slug, text in (("ada", content), ("bob", content), ("eve", "its own")):
            assert (await api.agent(slug).get("GUARDRAILS.md")).content == text
    with pytest.raises(carrel.ValidationError):
        await api.defaults.accept("GUARDRAILS.md", "two")


async def test_pinned_file_is_overridden_only_on_purpose(api: Any) -> None:
    await api.agents.create("ada")
    ada = api.agent("ada")
    with pytest.raises(carrel.Forbidden):
        await ada.put("GUARDRAILS.md", "mine")
    override = await ada.put("GUARDRAILS.md", "mine", accept_template_update=True)
    assert override.source == "agent-override-pinned"


async def test_change_of_an_agent_changes_its_files(api: Any) -> None:
    ann = await api.people.create("Ann", "ann@example.org", title="Dr")
    await api.agents.create("ada", "Ada")
    ada = api.agent("ada")
    paired = await api.agents.change(
        "ada", human_pair_id=ann.id, name="Countess", config={"model": "m"}
    )
    assert (paired.human_pair_id, paired.name) == (ann.id, "Countess")
    assert paired.config == {"model": "m"}
    assert "Ann" in (await ada.get("USER.md")).content
    assert "Countess" in (await ada.get("IDENTITY.md")).content
    assert "{{AGENT_NAME}}" in (await ada.get("IDENTITY.md", raw=True)).content
    assert "{{AGENT_NAME}}" in (await ada.read(raw=True))["IDENTITY.md"]
    rendered = await ada.render("IDENTITY.md", "I am {{AGENT_NAME}}")
    assert rendered["content"] == "I am Countess"
    alone = await api.agents.change("ada", human_pair_id=None)
    assert (alone.human_pair_id, "Ann" in (await ada.get("USER.md")).content) == (None, False)
    await api.templates.create("calm")
    assert (await api.templates.change("calm", name="Calmer")).name == "Calmer"


async def test_defaults_are_compared_with_the_packaged_ones_and_updated(api: Any) -> None:
    await api.defaults.put("SOUL.md", "ours")
    await api.defaults.delete("ROUTER.md")
    states = {file.path: file.state for file in (await api.defaults.status()).files}
    assert (states["SOUL.md"], states["ROUTER.md"]) == ("edited", "deleted")
    await api.defaults.update(take=["ROUTER.md"])
    assert (await api.defaults.get("ROUTER.md")).content
    with pytest.raises(carrel.ValidationError):
        await api.defaults.update(take="ROUTER.md")


async def test_prompt_of_an_agent_changes_and_that_of_a_run_does_not(api: Any) -> None:
    await api.agents.create("marco", "Marco")
    marco = api.agent("marco")
    await marco.put("MEMORY.md", "a canary")
    run = await marco.start_run("work")
    before = await marco.prompt()
    assert await run.prompt() == before
    assert "name=Marco" in before.text
    assert "a canary" in before.text
    assert "a canary" not in repr(await marco.prompt("shared"))
    assert await marco.lint() == ()
    await api.agents.change("marco", name="Mara")
    assert "name=Mara" in (await marco.prompt()).text
    assert await (await api.run(run.id)).prompt() == before
    assert await (await run.replay()).prompt() == before
    with pytest.raises(carrel.NotFound):
        await api.agent("unknown").prompt()


async def test_session_entries_are_appended_read_and_exported(api: Any) -> None:
    await api.agents.create("kate", "Kate")
    sessions = api.agent("kate").sessions
    session = await sessions.start(SESSION_ID, source_plugin="telegram")
    entry = await session.append(
        "user", "hello", message_id="m-1", source_plugin="telegram", sender_id="luis"
    )
    await session.append("assistant", "hello\u2028Luis")
    assert (entry.number, entry.role, entry.content) == (1, "user", "hello")
    assert (entry.message_id, entry.sender_id) == ("m-1", "luis")
    assert (session.entry_count, session.scope, session.source_plugin) == (2, "main", "telegram")
    assert [entry.content for entry in await session.read(after=1)] == ["hello\u2028Luis"]
    assert [entry.number for entry in await session.recent(1)] == [2]
    [match] = await sessions.search("lui")
    assert (match.id, match.facts["matches"][0]["number"]) == (SESSION_ID, 2)
    lines = [json.loads(line) for line in await session.lines()]
    assert [line["type"] for line in lines] == ["session", "entry", "entry"]
    assert session.started_at <= session.last_at
    await session.close()
    assert session.ended_at is not None
    assert (await session.refresh()).ended_at is not None
    with pytest.raises(carrel.Conflict):
        await session.append("user", "too late")
    with pytest.raises(carrel.ValidationError):
        await session.append("judge", "x")


async def test_sessions_are_found_by_id_and_listed_by_scope(api: Any) -> None:
    await api.agents.create("kate", "Kate")
    sessions = api.agent("kate").sessions
    group = await sessions.start(scope="group")
    main = await sessions.start()
    assert (group.scope, main.scope) == ("shared", "main")
    assert (await sessions.get(group.id)).id == group.id
    assert {session.id for session in await sessions.list()} == {group.id, main.id}
    assert [session.id for session in await sessions.list(scope="shared")] == [group.id]
    assert (await sessions.start(main.id)).scope == "main"
    with pytest.raises(carrel.Conflict, match="cannot change"):
        await sessions.start(main.id, scope="shared")
    with pytest.raises(carrel.ValidationError):
        await sessions.list(scope="group")
    with pytest.raises(carrel.NotFound):
        await sessions.get(SESSION_ID)
    assert repr(main) == f"<Session {main.id}>"


async def test_items_are_written_read_listed_and_deleted(api: Any) -> None:
    [person, *_] = await api.people.list()
    for slug in ("cook", "main"):
        await api.agents.create(slug, owner_id=person.id)
    cook, main = api.agent("cook").items, api.agent("main").items
    created = await cook.put("a/b ü.", "x" * 101, if_none_match="*")
    assert (created.key, created.version, created.etag) == ("a/b ü.", 1, '"v1"')
    assert await main.get("a/b ü.") == created
    [row] = await main.list("a")
    assert (row.key, row.preview) == ("a/b ü.", "x" * 100 + "...")
    assert await main.list("b") == ()
    with pytest.raises(carrel.WorkspaceConflict):
        await main.put("a/b ü.", "y", if_match='"v2"')
    assert (await main.put("a/b ü.", "y", if_match='"v1"', reason="to see")).version == 2
    assert (await cook.get("a/b ü.", version=1)).value == "x" * 101
    await cook.delete("a/b ü.", if_match='"v2"')
    with pytest.raises(carrel.NotFound):
        await main.get("a/b ü.")
    for key in (".", "..", "/"):
        assert (await main.put(key, "dots")).key == key


async def test_recalled_memory_is_promoted_by_a_dream_and_can_be_forgotten(api: Any) -> None:
    await api.agents.create("ada")
    ada = api.agent("ada")
    tea = await ada.memories.remember("Bob likes\ngreen tea", tags=["drinks"], kind="user")
    assert await ada.memories.remember("Bob likes green tea") == tea
    assert (tea.content, tea.scope, tea.tags) == ("Bob likes green tea", "main", ("drinks",))
    for query in ("tea", "green te", "what does Bob like"):
        [memory] = await ada.memories.recall(query)
        assert (memory.id, memory.score) == (tea.id, 1.0)
    assert [memory.id for memory in await ada.memories.search("drink")] == [tea.id]
    dry = await ada.dreams.sweep(dry_run=True)
    assert ([memory.memory_id for memory in dry.promoted], dry.rejected) == ([tea.id], ())
    dream = await ada.dreams.sweep()
    assert (dream.status, dream.promoted_count) == ("done", 1)
    assert "- Bob likes green tea _(score=" in (await ada.get("MEMORY.md")).content
    assert [row.id for row in await ada.dreams.list()] == [dream.id]
    [promoted] = (await ada.dreams.get(dream.id)).promoted
    assert promoted.memory_id == tea.id
    assert (await ada.memories.get(tea.id)).promoted_at == dream.started_at
    await ada.memories.forget(tea.id)
    assert await ada.memories.list() == ()
    assert "tea" not in (await ada.get("MEMORY.md")).content
    with pytest.raises(carrel.NotFound):
        await ada.memories.get(tea.id)
    with pytest.raises(carrel.ValidationError):
        await ada.memories.remember("")


async def test_proposed_dream_is_rejected_and_approved(api: Any) -> None:
    await api.agents.create("ada", config={"dreaming": {"review": True}})
    ada = api.agent("ada")
    assert (await ada.memories.remember("heard in a group", scope="a group")).scope == "shared"
    await ada.memories.remember("Bob likes tea")
    for query in ("tea", "Bob", "likes"):
        await ada.memories.recall(query)
    first = await ada.dreams.sweep()
    assert first.status == "proposed"
    assert (await ada.dreams.reject(first.id, "not now")).status == "rejected"
    second = await ada.dreams.sweep()
    assert (await ada.dreams.approve(second.id)).status == "done"
    assert "Bob likes tea" in (await ada.get("MEMORY.md")).content
    with pytest.raises(carrel.NotFound):
        await ada.dreams.approve("drm_none")


async def test_tools_are_described_and_called(api: Any) -> None:
    await api.agents.create("marco", "Marco")
    tools = api.agent("marco").tools
    assert "who_am_i" in [tool["name"] for tool in await tools.describe()]
    assert {tool["type"] for tool in await tools.describe("openai")} == {"function"}
    reply = await tools.call("who_am_i")
    assert reply.structured["agent_id"] == "marco"
    stored = await tools.call("remember", {"content": "Ada likes tea"}, call_id="c1")
    assert (stored.is_error, stored.structured["created"]) == (False, True)
    assert await tools.call("remember", {"content": "Ada likes tea"}, call_id="c1") == stored
    assert (await tools.call("recall", {"query": "tea"}, scope="shared")).is_error
    with pytest.raises(carrel.NotFound):
        await tools.call("fly")
    with pytest.raises(carrel.ValidationError):
        await api.approvals.list(status="maybe")
    assert await api.approvals.list() == ()


async def test_workspace_is_materialized(api: Any, tmp_path: Any) -> None:
    await api.agents.create("ada")
    ada = api.agent("ada")
    await ada.put("notes/a.md", "a")
    directory = tmp_path / "runtime" / "workspace"
    result = await ada.materialize(directory)
    assert result.changed
    assert (directory / "notes/a.md").read_text() == "a"
    assert not (await api.materialize("ada", directory)).changed
    await ada.write_memory("lessons.md", "ask first")
    assert (await api.materialize("ada", directory)).changed
    assert (directory / "memory/lessons.md").read_text() == "ask first"
    with pytest.raises(carrel.ValidationError):
        await ada.write_memory("other.md", "x")
