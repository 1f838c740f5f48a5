"""What an agent is given as its prompt, and a run for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from msgspec import structs
from tests.support.overlay_tenant import OverlayTenant
from tests.support.stores import advance_clock
from tests.support.tenants import create_tenant

from carrel.actions.accounts import people, tenants
from carrel.actions.accounts.people import Profile
from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsModel, PolicyModel
from carrel.actions.prompt import prompts
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.runs import RunRequest
from carrel.actions.timezones import local_date
from carrel.adapters.tokenizers.splintr import SplintrTokens
from carrel.core.access import Role
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.runs import Audience, Run, RunStatus
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
DAY: Final = 86_400_000
CANARY: Final = "canary-4711"
PRIVATE: Final = ("MEMORY.md", "notes/x.md", "DREAMS.md", "memory/contacts.md", "secret.md")


@pytest.fixture
async def office(ports: Ports) -> OverlayTenant:
    return await opened(ports)


async def opened(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def write(office: OverlayTenant, path: str, text: str) -> None:
    await office.write(await office.agent_stack(), Path(path), text.encode())


async def text_of(office: OverlayTenant, mode: Audience = Audience.MAIN) -> str:
    return (await prompts.load_agent_prompt(office.ports, office.owner, "marco", mode)).text


async def begun(office: OverlayTenant, mode: Audience = Audience.MAIN) -> Run:
    return await runs.start(office.ports, office.owner, RunRequest(agent="marco", mode=mode))


async def configured(office: OverlayTenant, **config: object) -> None:
    await agents.patch(office.ports, office.owner, "marco", {"config": config})


async def test_an_agents_prompt_is_made_of_its_composed_files(office: OverlayTenant) -> None:
    shown = await prompts.load_agent_prompt(office.ports, office.owner, "marco")
    assert "# GUARDRAILS\nbe good" in shown.text
    assert "# IDENTITY\nname=Marco\n" in shown.text
    assert "# SOUL\nMarco is brisk" in shown.text
    by_path = {block.path: block for block in shown.blocks}
    soul = by_path["SOUL.md"]
    assert (soul.source, soul.version, soul.kept) == ("template", 1, "kept")
    assert by_path["GUARDRAILS.md"].source == "template-pinned"
    assert soul.chars == len("# SOUL\nMarco is brisk")
    assert shown.chars == len(shown.text)
    assert (shown.tokenizer, shown.tokens) == ("estimate", -(-len(shown.text.encode()) // 4))


async def test_tokens_are_counted_by_whatever_counts_them(office: OverlayTenant) -> None:
    ports = replace(office.ports, tokenizer=SplintrTokens())
    shown = await prompts.load_agent_prompt(ports, office.owner, "marco")
    assert shown.tokenizer == "o200k_base"
    assert 0 < shown.tokens < len(shown.text)


async def test_notes_are_those_of_the_agents_own_days(office: OverlayTenant) -> None:
    now = office.ports.clock.now()
    await configured(office, timezone="Pacific/Kiritimati")
    there = local_date(now, "Pacific/Kiritimati")
    await write(office, f"notes/{there.isoformat()}.md", "rang the bell")
    assert f"# RECENT NOTES\n## {there.isoformat()}\nrang the bell" in await text_of(office)
    advance_clock(office.ports, DAY)
    assert "rang the bell" in await text_of(office)
    advance_clock(office.ports, DAY)
    assert "rang the bell" not in await text_of(office)


async def test_config_names_files_and_sets_limits(office: OverlayTenant) -> None:
    await configured(office, extraDocs=["team/style.md"], fileChars=100, promptChars=50_000)
    await write(office, "team/style.md", "x" * 200)
    with pytest.raises(Conflict, match=r"PLATFORM.md has \d+ characters"):
        await text_of(office)
    await configured(office, extraDocs=["team/style.md"])
    assert (await text_of(office)).endswith("# RULES — team/style.md\n" + "x" * 200)


async def test_the_key_changes_with_all_that_the_prompt_depends_on(office: OverlayTenant) -> None:
    async def key(mode: Audience = Audience.MAIN) -> str:
        return (await prompts.load_prompt_request(office.ports, office.owner, "marco", mode)).key

    seen = [await key(), await key(Audience.SHARED)]
    await write(office, "SOUL.md", "other")
    seen.append(await key())
    await configured(office, extraDocs=["a.md"])
    seen.append(await key())
    await agents.patch(office.ports, office.owner, "marco", {"name": "Mara"})
    seen.append(await key())
    shared = await key(Audience.SHARED)
    advance_clock(office.ports, DAY)
    seen.append(await key())
    assert len(set(seen)) == len(seen)
    assert await key(Audience.SHARED) == shared


async def test_the_prompt_of_a_run_stays_whatever_changes(anywhere: Ports) -> None:
    office = await opened(anywhere)
    ports, owner = office.ports, office.owner
    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_versions=1)))
    await configured(office, timezone="America/New_York", extraDocs=["a.md", "b.md"])
    today = local_date(ports.clock.now(), "America/New_York").isoformat()
    for path in ("a.md", "b.md", "MEMORY.md", "AGENTS.md", f"notes/{today}.md"):
        await write(office, path, f"1st {path}")
    started = {mode: await begun(office, mode) for mode in Audience}
    before = {mode: await prompts.load_run_prompt(ports, run) for mode, run in started.items()}
    assert "1st a.md" in before[Audience.MAIN].text
    assert "1st" not in before[Audience.SHARED].text.replace("1st AGENTS.md", "")
    assert before[Audience.MAIN] == await prompts.load_agent_prompt(ports, owner, "marco")

    advance_clock(ports, 40 * DAY)
    for path in ("a.md", "SOUL.md", "MEMORY.md", "AGENTS.md", f"notes/{today}.md"):
        await write(office, path, "second")
    await files.delete(ports, await office.agent_stack(), Path("b.md"), owner)
    await office.write(office.sales, Path("SOUL.md"), b"third")
    await configured(office, timezone="Asia/Tokyo", extraDocs=[], promptChars=50_000)
    bob = await people.create(ports, owner, Profile("Bob", "bob@example.org", Role.MEMBER))
    await agents.patch(ports, owner, "marco", {"name": "Mara", "humanPairId": bob.id})
    await agents.patch(ports, owner, "marco", {"templateId": None, "slug": "mara"})
    await templates.delete(ports, owner, "sales")
    await tenants.rename(ports, owner, "Renamed")
    for mode, run in started.items():
        assert (
            await prompts.load_run_prompt(ports, await runs.get(ports, owner, run.id))
            == before[mode]
        )
        again = await runs.start(ports, owner, RunRequest(replay_of=run.id))
        assert await prompts.load_run_prompt(ports, again) == before[mode]
        child = await runs.start(ports, owner, RunRequest(parent=run.id, share_parent=True))
        assert await prompts.load_run_prompt(ports, child) == before[mode]
    await agents.delete(ports, owner, "mara")
    for mode, run in started.items():
        assert await prompts.load_run_prompt(ports, run) == before[mode]


async def test_a_run_that_kept_no_words_has_the_prompt_of_its_first_day(
    office: OverlayTenant,
) -> None:
    ports = office.ports
    today = local_date(ports.clock.now(), None).isoformat()
    await write(office, f"notes/{today}.md", "noted")
    run = await begun(office)
    words = {name: word for name, word in run.variables.items() if not name.startswith("prompt:")}
    old = structs.replace(run, id=ports.clock.new_id("run"), variables=words)
    [old] = await ports.runs.start([(old, run.snapshot)])
    before = await prompts.load_run_prompt(ports, old)
    assert "noted" in before.text
    advance_clock(ports, 3 * DAY)
    assert await prompts.load_run_prompt(ports, old) == before
    again = await runs.start(ports, office.owner, RunRequest(replay_of=old.id))
    assert await prompts.load_run_prompt(ports, again) == before


async def test_a_workspace_that_is_no_agents_has_a_prompt_too(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await files.put(ports, (owner.scope,), Path("SOUL.md"), b"{{AGENT_NAME}}", owner)
    run = await runs.start(ports, owner, RunRequest("work"))
    shown = await prompts.load_run_prompt(ports, run)
    assert shown.text == "# SOUL\n{{AGENT_NAME}}"


async def test_what_a_run_keeps_is_not_for_a_caller_to_say(office: OverlayTenant) -> None:
    asked = RunRequest(agent="marco", variables={"prompt:day": "2020-01-01"})
    with pytest.raises(ValidationError, match="prompt:day"):
        await runs.start(office.ports, office.owner, asked)


async def test_there_is_no_prompt_of_what_was_let_go(office: OverlayTenant) -> None:
    run = await begun(office)
    done = RunStatus.COMPLETED
    await runs.update(office.ports, office.owner, run.id, status=done, keep_snapshot=False)
    with pytest.raises(NotFound):
        await prompts.load_run_prompt(
            office.ports, await runs.get(office.ports, office.owner, run.id)
        )
    with pytest.raises(NotFound):
        await prompts.load_run_prompt(office.ports, run)


async def test_a_shared_run_shows_nothing_private_in_any_way(office: OverlayTenant) -> None:
    ports = office.ports
    for path in PRIVATE:
        await write(office, path, CANARY)
    run = await begun(office, Audience.SHARED)
    seen = {path.text for path in (await snapshots.load_manifest(ports, run)).files}
    allowed = {"PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md", "IDENTITY.md", "SOUL.md"}
    assert seen == allowed
    for path in PRIVATE:
        await write(office, path, f"{CANARY} again")
        with pytest.raises(NotFound):
            await snapshots.read_file(ports, run, Path(path))
        with pytest.raises(NotFound):
            await diff.diff_file(ports, run, Path(path))
    await write(office, "AGENTS.md", "peers")
    assert [each.path.text for each in await diff.diff(ports, run)] == ["AGENTS.md"]
    assert CANARY not in repr(await prompts.load_run_prompt(ports, run))
    assert CANARY not in repr(
        await prompts.load_agent_prompt(ports, office.owner, "marco", Audience.SHARED)
    )


async def test_a_strangers_agent_has_no_prompt(office: OverlayTenant) -> None:
    _, stranger = await create_tenant(office.ports, "globex")
    with pytest.raises(NotFound):
        await prompts.load_agent_prompt(office.ports, stranger, "marco")
