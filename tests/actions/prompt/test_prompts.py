"""An agent's prompt, and the fixed prompt of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from msgspec import structs
from tests.support.overlay_tenant import OverlayTenant
from tests.support.stores import advance_clock
from tests.support.tenants import create_tenant

from carrel.actions.accounts import people, tenants
from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import LimitsModel, PolicyModel
from carrel.actions.prompt import prompts
from carrel.actions.runs import diff, runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.timezones import local_date
from carrel.adapters.tokenizers.splintr import SplintrTokens
from carrel.core.access import Role
from carrel.core.accounts import PersonRecord
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.runs import Audience, Run, RunStatus
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
DAY: Final = 86_400_000
CANARY: Final = "canary-4711"
PRIVATE: Final = ("MEMORY.md", "notes/x.md", "DREAMS.md", "memory/contacts.md", "secret.md")


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    return await open_tenant(ports)


async def open_tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def write(tenant: OverlayTenant, path: str, text: str) -> None:
    await tenant.write(await tenant.agent_stack(), Path(path), text.encode())


async def prompt_text(tenant: OverlayTenant, mode: Audience = Audience.MAIN) -> str:
    return (await prompts.load_agent_prompt(tenant.ports, tenant.owner, "marco", mode)).text


async def start_run(tenant: OverlayTenant, mode: Audience = Audience.MAIN) -> Run:
    return await runs.start(tenant.ports, tenant.owner, RunRequest(agent="marco", mode=mode))


async def configure(tenant: OverlayTenant, **config: object) -> None:
    await agents.patch(tenant.ports, tenant.owner, "marco", {"config": config})


async def test_an_agents_prompt_consists_of_its_composed_files(tenant: OverlayTenant) -> None:
    prompt = await prompts.load_agent_prompt(tenant.ports, tenant.owner, "marco")
    assert "# GUARDRAILS\nbe good" in prompt.text
    assert "# IDENTITY\nname=Marco\n" in prompt.text
    assert "# SOUL\nMarco is brisk" in prompt.text
    by_path = {block.path: block for block in prompt.blocks}
    soul = by_path["SOUL.md"]
    assert (soul.source, soul.version, soul.kept) == ("template", 1, "kept")
    assert by_path["GUARDRAILS.md"].source == "template-pinned"
    assert soul.chars == len("# SOUL\nMarco is brisk")
    assert prompt.chars == len(prompt.text)
    assert (prompt.tokenizer, prompt.tokens) == ("estimate", -(-len(prompt.text.encode()) // 4))


async def test_tokens_are_counted_by_the_configured_tokenizer(tenant: OverlayTenant) -> None:
    ports = replace(tenant.ports, tokenizer=SplintrTokens())
    prompt = await prompts.load_agent_prompt(ports, tenant.owner, "marco")
    assert prompt.tokenizer == "o200k_base"
    assert 0 < prompt.tokens < len(prompt.text)


async def test_notes_are_those_of_the_agents_local_days(tenant: OverlayTenant) -> None:
    now = tenant.ports.clock.now()
    await configure(tenant, timezone="Pacific/Kiritimati")
    today = local_date(now, "Pacific/Kiritimati")
    await write(tenant, f"notes/{today.isoformat()}.md", "rang twice")
    assert f"# RECENT NOTES\n## {today.isoformat()}\nrang twice" in await prompt_text(tenant)
    advance_clock(tenant.ports, DAY)
    assert "rang twice" in await prompt_text(tenant)
    advance_clock(tenant.ports, DAY)
    assert "rang twice" not in await prompt_text(tenant)


async def test_config_names_files_and_sets_limits(tenant: OverlayTenant) -> None:
    await configure(tenant, extraDocs=["team/style.md"], fileChars=100, promptChars=50_000)
    await write(tenant, "team/style.md", "x" * 200)
    with pytest.raises(Conflict, match=r"PLATFORM.md has \d+ characters"):
        await prompt_text(tenant)
    await configure(tenant, extraDocs=["team/style.md"])
    assert (await prompt_text(tenant)).endswith("# RULES — team/style.md\n" + "x" * 200)


async def test_the_key_changes_with_every_input_of_the_prompt(tenant: OverlayTenant) -> None:
    async def key(mode: Audience = Audience.MAIN) -> str:
        return (await prompts.load_prompt_request(tenant.ports, tenant.owner, "marco", mode)).key

    prompt_keys = [await key(), await key(Audience.SHARED)]
    await write(tenant, "SOUL.md", "other")
    prompt_keys.append(await key())
    await configure(tenant, extraDocs=["a.md"])
    prompt_keys.append(await key())
    await agents.patch(tenant.ports, tenant.owner, "marco", {"name": "Mara"})
    prompt_keys.append(await key())
    shared = await key(Audience.SHARED)
    advance_clock(tenant.ports, DAY)
    prompt_keys.append(await key())
    assert len(set(prompt_keys)) == len(prompt_keys)
    assert await key(Audience.SHARED) == shared


async def test_the_prompt_of_a_run_never_changes(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    ports, owner = tenant.ports, tenant.owner
    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_versions=1)))
    await configure(tenant, timezone="America/New_York", extraDocs=["a.md", "b.md"])
    today = local_date(ports.clock.now(), "America/New_York").isoformat()
    for path in ("a.md", "b.md", "MEMORY.md", "AGENTS.md", f"notes/{today}.md"):
        await write(tenant, path, f"1st {path}")
    started = {mode: await start_run(tenant, mode) for mode in Audience}
    before = {mode: await prompts.load_run_prompt(ports, run) for mode, run in started.items()}
    assert "1st a.md" in before[Audience.MAIN].text
    assert "1st" not in before[Audience.SHARED].text.replace("1st AGENTS.md", "")
    assert before[Audience.MAIN] == await prompts.load_agent_prompt(ports, owner, "marco")

    advance_clock(ports, 40 * DAY)
    for path in ("a.md", "SOUL.md", "MEMORY.md", "AGENTS.md", f"notes/{today}.md"):
        await write(tenant, path, "second")
    await files.delete(ports, await tenant.agent_stack(), Path("b.md"), owner)
    await tenant.write(tenant.sales, Path("SOUL.md"), b"third")
    await configure(tenant, timezone="Asia/Tokyo", extraDocs=[], promptChars=50_000)
    bob = await people.create(ports, owner, PersonRecord("Bob", "bob@example.org", Role.MEMBER))
    await agents.patch(ports, owner, "marco", {"name": "Mara", "human_pair_id": bob.id})
    await agents.patch(ports, owner, "marco", {"template_id": None, "slug": "mara"})
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


async def test_a_run_without_prompt_variables_has_the_prompt_of_its_first_day(
    tenant: OverlayTenant,
) -> None:
    ports = tenant.ports
    today = local_date(ports.clock.now(), None).isoformat()
    await write(tenant, f"notes/{today}.md", "noted")
    run = await start_run(tenant)
    variables = {
        name: value for name, value in run.variables.items() if not name.startswith("prompt:")
    }
    old = structs.replace(run, id=ports.clock.new_id("run"), variables=variables)
    [old] = await ports.runs.start([(old, run.snapshot)])
    before = await prompts.load_run_prompt(ports, old)
    assert "noted" in before.text
    advance_clock(ports, 3 * DAY)
    assert await prompts.load_run_prompt(ports, old) == before
    again = await runs.start(ports, tenant.owner, RunRequest(replay_of=old.id))
    assert await prompts.load_run_prompt(ports, again) == before


async def test_a_workspace_without_an_agent_has_a_prompt(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await files.put(ports, (owner.scope,), Path("SOUL.md"), b"{{AGENT_NAME}}", owner)
    run = await runs.start(ports, owner, RunRequest("work"))
    prompt = await prompts.load_run_prompt(ports, run)
    assert prompt.text == "# SOUL\n{{AGENT_NAME}}"


async def test_a_caller_cannot_set_a_prompt_variable(tenant: OverlayTenant) -> None:
    request = RunRequest(agent="marco", variables={"prompt:day": "2020-01-01"})
    with pytest.raises(ValidationError, match="prompt:day"):
        await runs.start(tenant.ports, tenant.owner, request)


async def test_a_released_run_has_no_prompt(tenant: OverlayTenant) -> None:
    run = await start_run(tenant)
    done = RunStatus.COMPLETED
    await runs.update(tenant.ports, tenant.owner, run.id, status=done, keep_snapshot=False)
    with pytest.raises(NotFound):
        await prompts.load_run_prompt(
            tenant.ports, await runs.get(tenant.ports, tenant.owner, run.id)
        )
    with pytest.raises(NotFound):
        await prompts.load_run_prompt(tenant.ports, run)


async def test_a_shared_run_shows_no_private_file(tenant: OverlayTenant) -> None:
    ports = tenant.ports
    for path in PRIVATE:
        await write(tenant, path, CANARY)
    run = await start_run(tenant, Audience.SHARED)
    listed = {path.text for path in (await snapshots.load_manifest(ports, run)).files}
    allowed = {"PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md", "IDENTITY.md", "SOUL.md"}
    assert listed == allowed
    for path in PRIVATE:
        await write(tenant, path, f"{CANARY} again")
        with pytest.raises(NotFound):
            await snapshots.read_file(ports, run, Path(path))
        with pytest.raises(NotFound):
            await diff.diff_file(ports, run, Path(path))
    await write(tenant, "AGENTS.md", "peers")
    assert [item.path.text for item in await diff.diff(ports, run)] == ["AGENTS.md"]
    assert CANARY not in repr(await prompts.load_run_prompt(ports, run))
    assert CANARY not in repr(
        await prompts.load_agent_prompt(ports, tenant.owner, "marco", Audience.SHARED)
    )


async def test_an_agent_of_another_tenant_has_no_prompt(tenant: OverlayTenant) -> None:
    _, stranger = await create_tenant(tenant.ports, "globex")
    with pytest.raises(NotFound):
        await prompts.load_agent_prompt(tenant.ports, stranger, "marco")
