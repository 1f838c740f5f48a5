"""Skills of an agent: inherited, pinned and reviewed, in prompts and frozen for runs."""

from __future__ import annotations

import threading

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.files import files
from carrel.actions.overlay import pin_reviews, stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.actions.prompt import lint, prompts
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.skills.artifacts import load_artifact, load_served
from carrel.actions.skills.skill_check import check_skills
from carrel.actions.skills.skills import LoadedSkill, list_run_skills, list_skills
from carrel.core.files.file_kinds import LINK_TYPE
from carrel.core.identifiers import Path, digest
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.file_classes import FileClass
from carrel.core.prompt.lint import LintRule
from carrel.core.runs import Audience, Run
from carrel.core.skills import front_matter
from carrel.core.skills.front_matter import FrontMatter
from carrel.core.skills.skill_folder import SKILLS_PATTERN, compute_skill_digest
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
PDF, SCRIPT, NEW = map(Path, ("skills/pdf/SKILL.md", "skills/pdf/run.sh", "skills/pdf/new.md"))
MAIN = Audience.MAIN


def skill_md(name: str, description: str = "Reads it") -> bytes:
    return f"---\nname: {name}\ndescription: {description}\n---\n# How\n".encode()


class SkilledTenant(OverlayTenant):
    """A tenant whose template has the skill `pdf` and whose defaults have `csv`."""

    async def add_skills(self) -> SkilledTenant:
        await self.write(self.defaults, Path("skills/csv/SKILL.md"), skill_md("csv"))
        await self.write(self.sales, PDF, skill_md("pdf"))
        await self.write(self.sales, SCRIPT, b"#!/bin/sh\n")
        return self

    async def skills(self) -> dict[str, LoadedSkill]:
        listed = await list_skills(self.ports, await self.agent_stack())
        return {skill.name: skill for skill in listed}

    async def prompt(self, mode: Audience = MAIN) -> prompts.AssembledPrompt:
        return await prompts.load_agent_prompt(self.ports, self.owner, "marco", mode)

    async def run(self, mode: Audience = MAIN) -> Run:
        return await runs.start(self.ports, self.owner, RunRequest(agent="marco", mode=mode))

    async def pin_skills(self) -> None:
        rule = ClassRuleModel(SKILLS_PATTERN, FileClass.PINNED)
        await policies.put(self.ports, self.owner, PolicyModel(classes=(rule,)))

    async def accept(self, path: Path, text: bytes) -> None:
        await pin_reviews.accept(self.ports, self.owner, "marco", path, digest(text))


async def open_tenant(ports: Ports) -> SkilledTenant:
    _, owner = await create_tenant(ports)
    tenant = SkilledTenant(ports, owner)
    await tenant.open()
    return await tenant.add_skills()


async def test_skills_are_inherited_from_every_layer(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    own = Path("skills/own/SKILL.md")
    await tenant.write(await tenant.agent_stack(), own, skill_md("own"))
    await tenant.write(await tenant.agent_stack(), SCRIPT, b"mine")
    skills = await tenant.skills()
    sources = {
        name: {path: file.source_label for path, file in skill.folder.files.items()}
        for name, skill in skills.items()
    }
    assert sources == {
        "csv": {"SKILL.md": "defaults"},
        "own": {"SKILL.md": "agent-override"},
        "pdf": {"SKILL.md": "template", "run.sh": "agent-override"},
    }
    assert (await load_served(anywhere, skills["pdf"].folder) or {})["run.sh"] == b"mine"
    template_skills = await list_skills(anywhere, tenant.sales)
    assert [skill.name for skill in template_skills] == ["pdf"]


async def test_a_shared_workspace_has_skills_of_its_own(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    stack = await stacks.workspace_stack(anywhere, tenant.owner, "notes")
    await tenant.write(stack, PDF, skill_md("pdf"))
    assert [skill.name for skill in await list_skills(anywhere, stack)] == ["pdf"]


async def test_the_digest_is_that_of_the_paths_and_contents(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    before = (await tenant.skills())["pdf"].folder.digest
    files_of_pdf = {"SKILL.md": digest(skill_md("pdf")), "run.sh": digest(b"#!/bin/sh\n")}
    assert before == compute_skill_digest(files_of_pdf)
    await tenant.write(tenant.sales, SCRIPT, b"changed")
    assert (await tenant.skills())["pdf"].folder.digest != before


async def test_an_invalid_skill_is_stored_and_named_but_not_in_the_prompt(ports: Ports) -> None:
    tenant = await open_tenant(ports)
    await tenant.write(tenant.sales, PDF, b"---\nname: other\n---\n")
    skills = await tenant.skills()
    assert skills["pdf"].definition.problems == (
        "name is 'other', but the folder is 'pdf'",
        "description must be a text that is not empty",
    )
    prompt = await tenant.prompt()
    assert "- csv:" in prompt.text
    assert "- pdf:" not in prompt.text
    [block] = [block for block in prompt.blocks if block.path == PDF.text]
    assert (block.kept, block.source) == ("left out", "template")
    listed = await lint.lint_agent(ports, tenant.owner, "marco")
    assert [item.path for item in listed if item.rule is LintRule.SKILL] == [PDF.text] * 2
    assert await load_artifact(ports, skills["pdf"]) is None


async def test_a_link_is_no_skill_and_not_in_an_archive(ports: Ports) -> None:
    tenant = await open_tenant(ports)
    await tenant.write(tenant.sales, NEW, b"/etc/passwd", type=LINK_TYPE)
    artifact = await load_artifact(ports, (await tenant.skills())["pdf"])
    assert artifact is not None
    assert b"passwd" not in artifact.content
    await tenant.write(tenant.sales, PDF, b"x", type=LINK_TYPE)
    assert (await tenant.skills())["pdf"].definition.problems == (
        "SKILL.md is a symbolic link; links are not followed",
    )


async def test_a_skill_is_rendered_for_its_agent(ports: Ports) -> None:
    tenant = await open_tenant(ports)
    await tenant.write(tenant.sales, PDF, skill_md("pdf", "Helps {{AGENT_NAME}}"))
    assert "- pdf: Helps Marco\n" in (await tenant.prompt()).text


async def test_the_limit_and_the_allowed_tools_decide_about_the_index(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    assert "- csv: Reads it\n- pdf: Reads it\n" in (await tenant.prompt()).text
    await agents.patch(anywhere, tenant.owner, "marco", {"config": {"allowedTools": ["read"]}})
    assert "SKILLS" not in (await tenant.prompt()).text
    await agents.patch(anywhere, tenant.owner, "marco", {"config": {"skillsChars": 0}})
    assert "SKILLS" not in (await tenant.prompt()).text
    await agents.patch(anywhere, tenant.owner, "marco", {"config": {}})
    assert "# SKILLS" in (await tenant.prompt()).text
    assert "SKILLS" not in (await tenant.prompt(Audience.SHARED)).text


async def test_a_run_keeps_its_skills_and_its_prompt(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    run, shared = await tenant.run(), await tenant.run(Audience.SHARED)
    before = await prompts.load_run_prompt(anywhere, run)
    assert "- pdf: Reads it\n" in before.text
    digests = [skill.folder.digest for skill in await list_run_skills(anywhere, run)]
    await tenant.write(tenant.sales, PDF, skill_md("pdf", "Changed"))
    await files.delete(anywhere, tenant.sales, SCRIPT, tenant.owner)
    await agents.patch(anywhere, tenant.owner, "marco", {"config": {"skillsChars": 0}})
    assert await prompts.load_run_prompt(anywhere, run) == before
    assert [s.folder.digest for s in await list_run_skills(anywhere, run)] == digests
    replayed = await runs.start(anywhere, tenant.owner, RunRequest(replay_of=run.id))
    assert (await prompts.load_run_prompt(anywhere, replayed)).text == before.text
    assert await list_run_skills(anywhere, shared) == ()


async def test_every_change_of_a_pinned_skill_waits_for_review(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    await tenant.pin_skills()
    before = (await tenant.skills())["pdf"].folder.digest
    script, text = b"#!/bin/sh\necho\n", skill_md("pdf", "Changed")
    await tenant.write(tenant.sales, SCRIPT, script)
    await tenant.write(tenant.sales, PDF, text)
    await tenant.write(tenant.sales, NEW, b"new")
    await tenant.write(tenant.sales, Path("skills/late/SKILL.md"), skill_md("late"))
    await files.delete(anywhere, tenant.defaults, Path("skills/csv/SKILL.md"), tenant.owner)
    skills = await tenant.skills()
    assert list(skills) == ["csv", "pdf"]
    assert skills["pdf"].folder.digest == before
    assert "- pdf: Reads it\n" in (await tenant.prompt()).text
    statuses = await pin_reviews.load_reviews(anywhere, tenant.owner, "marco")
    waiting = {item.pin.path.text for item in statuses if item.pin.update_available}
    added = {PDF.text, SCRIPT.text, NEW.text, "skills/late/SKILL.md"}
    assert waiting == added | {"skills/csv/SKILL.md"}
    await tenant.accept(SCRIPT, script)
    await tenant.accept(NEW, b"new")
    changed = (await tenant.skills())["pdf"].folder
    assert (list(changed.files), changed.digest != before) == (
        ["SKILL.md", "new.md", "run.sh"],
        True,
    )
    assert "- pdf: Reads it\n" in (await tenant.prompt()).text
    await tenant.accept(PDF, text)
    await tenant.accept(Path("skills/late/SKILL.md"), skill_md("late"))
    assert "- late: Reads it\n- pdf: Changed\n" in (await tenant.prompt()).text


async def test_an_agent_created_later_starts_with_the_pinned_skills_as_they_are(
    anywhere: Ports,
) -> None:
    tenant = await open_tenant(anywhere)
    await tenant.pin_skills()
    await tenant.create_agent("kate", "Kate")
    await tenant.write(tenant.sales, PDF, skill_md("pdf", "Changed"))
    listed = await list_skills(anywhere, await tenant.agent_stack("kate"))
    assert [(s.name, s.definition.description) for s in listed] == [
        ("csv", "Reads it"),
        ("pdf", "Reads it"),
    ]


async def test_equal_skills_have_equal_archives(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    skills = await tenant.skills()
    archives = [await load_artifact(anywhere, skills["pdf"]) for _ in range(2)]
    assert archives[0] == archives[1]
    single = await load_artifact(anywhere, skills["csv"])
    assert single is not None
    assert (single.kind, single.content) == ("skill-md", skill_md("csv"))


async def test_doctor_names_every_invalid_skill_of_a_layer(anywhere: Ports) -> None:
    tenant = await open_tenant(anywhere)
    findings = FindingList()
    own = await tenant.agent_stack()
    await tenant.write(own, SCRIPT, b"an override without a SKILL.md of its own")
    await tenant.write(own, Path("skills/who/SKILL.md"), skill_md("who", "{{AGENT_NAME}}"))
    await check_skills(anywhere, findings)
    assert findings.items == []
    await tenant.write(tenant.sales, PDF, skill_md("other"))
    await tenant.write(own, PDF, b"none")
    await check_skills(anywhere, findings)
    assert [(item.severity.value, item.subject, item.text) for item in findings.items] == [
        (
            "warning",
            "template sales of acme",
            f"{PDF} is invalid: name is 'other', but the folder is 'pdf'",
        ),
        (
            "warning",
            "agent marco of acme",
            f"{PDF} is invalid: SKILL.md: it must start with front matter (---)",
        ),
    ]


async def test_a_file_that_was_removed_upstream_stays_until_it_is_made_live_and_deleted(
    anywhere: Ports,
) -> None:
    tenant = await open_tenant(anywhere)
    await tenant.pin_skills()
    await files.delete(anywhere, tenant.sales, SCRIPT, tenant.owner)
    assert "run.sh" in (await tenant.skills())["pdf"].folder.files
    rules = (
        ClassRuleModel(SCRIPT.text, FileClass.LIVE),
        ClassRuleModel(SKILLS_PATTERN, FileClass.PINNED),
    )
    await policies.put(anywhere, tenant.owner, PolicyModel(classes=rules), "withdrawn")
    await files.delete(anywhere, await tenant.agent_stack(), SCRIPT, tenant.owner)
    await tenant.pin_skills()
    assert list((await tenant.skills())["pdf"].folder.files) == ["SKILL.md"]


async def test_many_skills_are_read_outside_the_event_loop(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = await open_tenant(ports)
    threads = [threading.get_ident()]
    read = front_matter.parse_front_matter

    def note_thread(text: str) -> FrontMatter:
        threads.append(threading.get_ident())
        return read(text)

    monkeypatch.setattr("carrel.core.skills.skill_definition.parse_front_matter", note_thread)
    assert list(await tenant.skills()) == ["csv", "pdf"]
    assert set(threads) == {threading.get_ident()}
    await tenant.write(tenant.sales, Path("skills/big/SKILL.md"), skill_md("big") + b"x" * 2**15)
    threads.clear()
    assert list(await tenant.skills()) == ["big", "csv", "pdf"]
    assert threading.get_ident() not in threads
    assert len(threads) == 3
