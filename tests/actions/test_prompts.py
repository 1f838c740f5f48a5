"""What an agent is given as its prompt, and a run for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from msgspec import structs
from tests.actions.cast import founded
from tests.actions.office import Office
from tests.worlds import travel

from carrel.actions.accounts import people, tenants
from carrel.actions.accounts.people import Profile
from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsModel, PolicyModel
from carrel.actions.prompt import prompts
from carrel.actions.runs import diff as differences
from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.actions.timezones import day
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
async def office(world: Ports) -> Office:
    return await opened(world)


async def opened(world: Ports) -> Office:
    _, owner = await founded(world)
    return await Office(world, owner).open()


async def write(office: Office, path: str, text: str) -> None:
    await office.write(await office.own(), Path(path), text.encode())


async def text_of(office: Office, mode: Audience = Audience.MAIN) -> str:
    return (await prompts.of_agent(office.world, office.owner, "marco", mode)).text


async def begun(office: Office, mode: Audience = Audience.MAIN) -> Run:
    return await runs.start(office.world, office.owner, RunRequest(agent="marco", mode=mode))


async def configured(office: Office, **config: object) -> None:
    await agents.patch(office.world, office.owner, "marco", {"config": config})


async def test_an_agents_prompt_is_made_of_its_composed_files(office: Office) -> None:
    shown = await prompts.of_agent(office.world, office.owner, "marco")
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


async def test_tokens_are_counted_by_whatever_counts_them(office: Office) -> None:
    world = replace(office.world, tokens=SplintrTokens())
    shown = await prompts.of_agent(world, office.owner, "marco")
    assert shown.tokenizer == "o200k_base"
    assert 0 < shown.tokens < len(shown.text)


async def test_notes_are_those_of_the_agents_own_days(office: Office) -> None:
    now = office.world.clock.now()
    await configured(office, timezone="Pacific/Kiritimati")
    there = day(now, "Pacific/Kiritimati")
    await write(office, f"notes/{there.isoformat()}.md", "rang the bell")
    assert f"# RECENT NOTES\n## {there.isoformat()}\nrang the bell" in await text_of(office)
    travel(office.world, DAY)
    assert "rang the bell" in await text_of(office)
    travel(office.world, DAY)
    assert "rang the bell" not in await text_of(office)


async def test_config_names_files_and_sets_limits(office: Office) -> None:
    await configured(office, extraDocs=["team/style.md"], fileChars=100, promptChars=50_000)
    await write(office, "team/style.md", "x" * 200)
    with pytest.raises(Conflict, match=r"PLATFORM.md has \d+ characters"):
        await text_of(office)
    await configured(office, extraDocs=["team/style.md"])
    assert (await text_of(office)).endswith("# RULES — team/style.md\n" + "x" * 200)


async def test_the_key_changes_with_all_that_the_prompt_depends_on(office: Office) -> None:
    async def key(mode: Audience = Audience.MAIN) -> str:
        return (await prompts.load_prompt_request(office.world, office.owner, "marco", mode)).key

    seen = [await key(), await key(Audience.SHARED)]
    await write(office, "SOUL.md", "other")
    seen.append(await key())
    await configured(office, extraDocs=["a.md"])
    seen.append(await key())
    await agents.patch(office.world, office.owner, "marco", {"name": "Mara"})
    seen.append(await key())
    shared = await key(Audience.SHARED)
    travel(office.world, DAY)
    seen.append(await key())
    assert len(set(seen)) == len(seen)
    assert await key(Audience.SHARED) == shared


async def test_the_prompt_of_a_run_stays_whatever_changes(anywhere: Ports) -> None:
    office = await opened(anywhere)
    world, owner = office.world, office.owner
    await policies.put(world, owner, PolicyModel(limits=LimitsModel(max_versions=1)))
    await configured(office, timezone="America/New_York", extraDocs=["a.md", "b.md"])
    today = day(world.clock.now(), "America/New_York").isoformat()
    for path in ("a.md", "b.md", "MEMORY.md", "AGENTS.md", f"notes/{today}.md"):
        await write(office, path, f"1st {path}")
    started = {mode: await begun(office, mode) for mode in Audience}
    before = {mode: await prompts.of_run(world, run) for mode, run in started.items()}
    assert "1st a.md" in before[Audience.MAIN].text
    assert "1st" not in before[Audience.SHARED].text.replace("1st AGENTS.md", "")
    assert before[Audience.MAIN] == await prompts.of_agent(world, owner, "marco")

    travel(world, 40 * DAY)
    for path in ("a.md", "SOUL.md", "MEMORY.md", "AGENTS.md", f"notes/{today}.md"):
        await write(office, path, "second")
    await files.delete(world, await office.own(), Path("b.md"), owner)
    await office.write(office.sales, Path("SOUL.md"), b"third")
    await configured(office, timezone="Asia/Tokyo", extraDocs=[], promptChars=50_000)
    bob = await people.create(world, owner, Profile("Bob", "bob@example.org", Role.MEMBER))
    await agents.patch(world, owner, "marco", {"name": "Mara", "humanPairId": bob.id})
    await agents.patch(world, owner, "marco", {"templateId": None, "slug": "mara"})
    await templates.delete(world, owner, "sales")
    await tenants.rename(world, owner, "Renamed")
    for mode, run in started.items():
        assert await prompts.of_run(world, await runs.get(world, owner, run.id)) == before[mode]
        again = await runs.start(world, owner, RunRequest(replay_of=run.id))
        assert await prompts.of_run(world, again) == before[mode]
        child = await runs.start(world, owner, RunRequest(parent=run.id, share_parent=True))
        assert await prompts.of_run(world, child) == before[mode]
    await agents.delete(world, owner, "mara")
    for mode, run in started.items():
        assert await prompts.of_run(world, run) == before[mode]


async def test_a_run_that_kept_no_words_has_the_prompt_of_its_first_day(office: Office) -> None:
    world = office.world
    today = day(world.clock.now(), None).isoformat()
    await write(office, f"notes/{today}.md", "noted")
    run = await begun(office)
    words = {name: word for name, word in run.variables.items() if not name.startswith("prompt:")}
    old = structs.replace(run, id=world.clock.fresh("run"), variables=words)
    [old] = await world.runs.start([(old, run.snapshot)])
    before = await prompts.of_run(world, old)
    assert "noted" in before.text
    travel(world, 3 * DAY)
    assert await prompts.of_run(world, old) == before
    again = await runs.start(world, office.owner, RunRequest(replay_of=old.id))
    assert await prompts.of_run(world, again) == before


async def test_a_workspace_that_is_no_agents_has_a_prompt_too(world: Ports) -> None:
    _, owner = await founded(world)
    await files.put(world, (owner.scope,), Path("SOUL.md"), b"{{AGENT_NAME}}", owner)
    run = await runs.start(world, owner, RunRequest("work"))
    shown = await prompts.of_run(world, run)
    assert shown.text == "# SOUL\n{{AGENT_NAME}}"


async def test_what_a_run_keeps_is_not_for_a_caller_to_say(office: Office) -> None:
    asked = RunRequest(agent="marco", variables={"prompt:day": "2020-01-01"})
    with pytest.raises(ValidationError, match="prompt:day"):
        await runs.start(office.world, office.owner, asked)


async def test_there_is_no_prompt_of_what_was_let_go(office: Office) -> None:
    run = await begun(office)
    done = RunStatus.COMPLETED
    await runs.change(office.world, office.owner, run.id, status=done, kept=False)
    with pytest.raises(NotFound):
        await prompts.of_run(office.world, await runs.get(office.world, office.owner, run.id))
    with pytest.raises(NotFound):
        await prompts.of_run(office.world, run)


async def test_a_shared_run_shows_nothing_private_in_any_way(office: Office) -> None:
    world = office.world
    for path in PRIVATE:
        await write(office, path, CANARY)
    run = await begun(office, Audience.SHARED)
    seen = {path.text for path in (await runs.manifest(world, run)).files}
    allowed = {"PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md", "IDENTITY.md", "SOUL.md"}
    assert seen == allowed
    for path in PRIVATE:
        await write(office, path, f"{CANARY} again")
        with pytest.raises(NotFound):
            await runs.file(world, run, Path(path))
        with pytest.raises(NotFound):
            await differences.difference(world, run, Path(path))
    await write(office, "AGENTS.md", "peers")
    assert [each.path.text for each in await differences.diff(world, run)] == ["AGENTS.md"]
    assert CANARY not in repr(await prompts.of_run(world, run))
    assert CANARY not in repr(await prompts.of_agent(world, office.owner, "marco", Audience.SHARED))


async def test_a_strangers_agent_has_no_prompt(office: Office) -> None:
    _, stranger = await founded(office.world, "globex")
    with pytest.raises(NotFound):
        await prompts.of_agent(office.world, stranger, "marco")
