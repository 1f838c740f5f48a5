"""A tenant's defaults follow the package and never overwrite an edit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.tenants import create_tenant, race, start_after_yields

from carrel import defaults
from carrel.actions.accounts import tenants
from carrel.actions.agents.agents import NewAgent, create
from carrel.actions.files import files
from carrel.actions.overlay import default_files, stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.access import Actor
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.commit import Commit
from carrel.core.store.record import RecordChange, RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
SOUL, ROUTER, LESSONS = Path("SOUL.md"), Path("ROUTER.md"), Path("memory/lessons.md")


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def owner(ports: Ports) -> Actor:
    return (await create_tenant(ports))[1]


async def read_defaults(ports: Ports, owner: Actor) -> Mapping[str, bytes]:
    workspace = await files.list_files(ports, await stacks.defaults_stack(ports, owner))
    contents = (await files.read_contents(ports, workspace)).contents
    return {path.text: content for path, content in contents.items()}


async def write(ports: Ports, owner: Actor, path: Path, text: bytes) -> None:
    await files.put(ports, await stacks.defaults_stack(ports, owner), path, text, owner)


def package(monkeypatch: pytest.MonkeyPatch, version: int, **texts: bytes) -> None:
    """Simulate a Carrel version with other packaged files."""
    named = {f"{name}.md": text for name, text in texts.items()}
    monkeypatch.setattr(default_files, "FILES", named)
    monkeypatch.setattr(default_files, "VERSION", version)


async def test_a_tenant_starts_with_the_eleven_files_and_an_agent_inherits_them(
    ports: Ports, owner: Actor
) -> None:
    assert await read_defaults(ports, owner) == defaults.FILES
    assert len(defaults.FILES) == 11
    await create(ports, owner, NewAgent("marco", "Marco"))
    listed = await files.list_files(ports, await stacks.agent_stack(ports, owner, "marco"))
    assert {path.text for path in listed.files} == set(defaults.FILES)
    status = await default_files.load_status(ports, owner)
    assert status.is_current
    assert (await default_files.update(ports, owner)).is_current


async def test_unedited_files_follow_the_package_and_edited_ones_are_kept_and_offered(
    ports: Ports, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(monkeypatch, 1, SOUL=b"soul 1", ROUTER=b"router 1", OLD=b"old 1")
    _, owner = await create_tenant(ports, "other")
    await write(ports, owner, SOUL, b"ours")
    package(monkeypatch, 2, SOUL=b"soul 2", ROUTER=b"router 2", NEW=b"new 2")

    status = await default_files.update(ports, owner)

    assert set(status.plan.writes) == {ROUTER, Path("NEW.md"), Path("OLD.md")}
    after = {"NEW.md": b"new 2", "ROUTER.md": b"router 2", "SOUL.md": b"ours"}
    assert await read_defaults(ports, owner) == after
    assert set((await default_files.load_status(ports, owner)).plan.offers) == {SOUL}
    await default_files.update(ports, owner, dismiss_paths=[SOUL])
    assert not (await default_files.load_status(ports, owner)).plan.offers
    package(monkeypatch, 3, SOUL=b"soul 3", ROUTER=b"router 2", NEW=b"new 2")
    await default_files.update(ports, owner, accept_paths=[SOUL])
    assert await read_defaults(ports, owner) == after | {"SOUL.md": b"soul 3"}
    with pytest.raises(NotFound):
        await default_files.update(ports, owner, accept_paths=[SOUL])
    package(monkeypatch, 2, SOUL=b"soul 2")
    assert (await default_files.update(ports, owner)).is_current
    assert await read_defaults(ports, owner) == after | {"SOUL.md": b"soul 3"}


async def test_a_deleted_file_stays_deleted_until_it_is_accepted_back(
    ports: Ports, owner: Actor
) -> None:
    await files.delete(ports, await stacks.defaults_stack(ports, owner), ROUTER, owner)
    await default_files.update(ports, owner)
    assert "ROUTER.md" not in await read_defaults(ports, owner)
    await default_files.update(ports, owner, accept_paths=[ROUTER])
    assert await read_defaults(ports, owner) == defaults.FILES


async def test_a_tenant_older_than_the_defaults_is_seeded_around_its_own_files(
    ports: Ports, owner: Actor
) -> None:
    scope = await stacks.defaults_stack(ports, owner)
    for path in (SOUL, LESSONS):
        await files.delete(ports, scope, path, owner)
    removal = RecordChange(owner.tenant, RecordType.DEFAULTS, owner.tenant, None)
    await ports.trees.commit([Commit((), "x", "forget", ports.clock.now(), changes=(removal,))])
    await write(ports, owner, ROUTER, b"ours")

    updates = [update async for update in default_files.update_all_tenants(ports)]

    assert [set(update.written) for update in updates] == [{SOUL, LESSONS}]
    assert await read_defaults(ports, owner) == {**defaults.FILES, "ROUTER.md": b"ours"}


async def test_a_newer_guardrail_waits_for_a_review(
    ports: Ports, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(monkeypatch, 1, GUARDRAILS=b"rules 1", SOUL=b"soul 1")
    _, owner = await create_tenant(ports, "other")
    await create(ports, owner, NewAgent("marco", "Marco"))
    marco = await stacks.agent_stack(ports, owner, "marco")
    package(monkeypatch, 2, GUARDRAILS=b"rules 2", SOUL=b"soul 2")
    assert [update.problem async for update in default_files.update_all_tenants(ports)] == [
        None,
        None,
    ]
    texts = (await files.read_contents(ports, await files.list_files(ports, marco))).contents
    assert (texts[Path("GUARDRAILS.md")], texts[SOUL]) == (b"rules 1", b"soul 2")


async def test_two_concurrent_updates_write_once(
    ports: Ports, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(monkeypatch, 1, SOUL=b"soul 1")
    for turns in range(12):
        _, owner = await create_tenant(ports, f"race-{turns}")
        package(monkeypatch, 2, SOUL=b"soul 2")
        updates = [
            default_files.update(ports, owner),
            start_after_yields(turns, default_files.update(ports, owner)),
        ]
        done, lost = await race(*updates)
        assert not lost
        assert len(done) == 2
        scope = (await stacks.defaults_stack(ports, owner))[0]
        assert len(await ports.trees.history(scope, SOUL)) == 2
        package(monkeypatch, 1, SOUL=b"soul 1")


async def test_a_secret_in_a_packaged_file_is_never_stored(
    ports: Ports, owner: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = b"AKIA" + b"IOSFODNN7EXAMPLE"
    package(monkeypatch, 2, SOUL=b"use " + key)
    await default_files.update(ports, owner)
    assert key not in (await read_defaults(ports, owner))["SOUL.md"]
    assert (await default_files.load_status(ports, owner)).is_current


async def test_a_file_pinned_by_policy_is_pinned_in_the_defaults(
    ports: Ports, owner: Actor
) -> None:
    rule = ClassRuleModel("ROUTER.md", FileClass.PINNED)
    await policies.put(ports, owner, PolicyModel(classes=(rule,)))
    await create(ports, owner, NewAgent("marco", "Marco"))
    await write(ports, owner, ROUTER, b"newer")
    marco = await stacks.agent_stack(ports, owner, "marco")
    file = await files.get_file(ports, marco, ROUTER)
    assert await files.read_content(ports, file) == defaults.FILES["ROUTER.md"]


async def test_the_first_tenant_is_seeded(ports: Ports) -> None:
    created = await tenants.bootstrap(ports, "a token of forty characters or a bit more")
    assert created
    assert await read_defaults(ports, Actor(created.tenant.id, "x")) == defaults.FILES
