"""The tool `skill`, and skills in the directory of commands."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import jsonschema
import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tool_fixture import BOX, TOOLS, ToolTenant, create_tool_tenant

from carrel.actions.agents import agents
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.adapters.sandbox.local import LocalSandbox
from carrel.core.errors import NotFound, Refusal, ValidationError
from carrel.core.files.file_kinds import LINK_TYPE
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.runs import Audience
from carrel.core.skills.sandbox_directory import READ_ONLY_NOTE
from carrel.ports import Ports
from carrel.tools import calls

pytestmark = pytest.mark.anyio
SKILL_MD = b"---\nname: pdf\ndescription: Reads {{AGENT_NAME}}\n---\n# How\nrun scripts/run.sh\n"
FILES = {
    "skills/pdf/SKILL.md": SKILL_MD,
    "skills/pdf/scripts/run.sh": b'#!/bin/bash\ncat "$(dirname "$0")/../data.txt"; echo $1\n',
    "skills/pdf/data.txt": b"of {{AGENT_NAME}}\n",
    "skills/pdf/logo.png": b"\x89PNG\xff",
    "skills/bad/SKILL.md": b"none",
}
RUN = '"$CARREL_SKILLS/pdf/scripts/run.sh" done'


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture
async def tools(ports: Ports) -> ToolTenant:
    return await add_skills(await create_tool_tenant(ports))


async def add_skills(tools: ToolTenant, *, inherited: bool = False) -> ToolTenant:
    """Give the agent skills, or the defaults, from which it inherits them."""
    stack = (Scope(tools.owner.tenant, ScopeKind.DEFAULTS, ""),) if inherited else None
    for path, content in FILES.items():
        await put(tools, path, content, stack)
    return tools


async def put(
    tools: ToolTenant, path: str, content: bytes, stack: Stack | None = None, **options: Any
) -> None:
    stack = stack or tools.context.stack
    await files.put(tools.ports, stack, Path(path), content, tools.owner, WriteOptions(**options))


async def call(tools: ToolTenant, **arguments: Any) -> tuple[str, Any]:
    """Text and structured result of the tool, which fits its schema."""
    tool = TOOLS["skill"]
    reply: Any = await tool.run(tools.context, tool.parse_arguments(arguments))
    jsonschema.validate(reply.structured, tool.output_schema)
    return reply.content, reply.structured


async def test_the_tool_lists_skills_and_why_some_are_invalid(tools: ToolTenant) -> None:
    text, result = await call(tools)
    problem = "SKILL.md: it must start with front matter (---)"
    assert text == f"- pdf: Reads Kate\n- bad is invalid: {problem}"
    assert result == {
        "skills": [{"name": "pdf", "description": "Reads Kate"}],
        "invalid": [{"name": "bad", "problems": [problem]}],
    }


async def test_without_skills_the_tool_says_so(ports: Ports) -> None:
    tools = await create_tool_tenant(ports)
    assert await call(tools) == ("There are no skills.", {"skills": [], "invalid": []})


async def test_the_tool_reads_instructions_and_bundled_files(tools: ToolTenant) -> None:
    text, result = await call(tools, name="pdf")
    names = ["SKILL.md", "data.txt", "logo.png", "scripts/run.sh"]
    assert text == (
        "# How\nrun scripts/run.sh\n\n[files: data.txt, logo.png, scripts/run.sh; read one with"
        " path; in bash they are in $CARREL_SKILLS/pdf]"
    )
    assert (result["content"], result["files"]) == ("# How\nrun scripts/run.sh", names)
    text, result = await call(tools, name="pdf", path="data.txt")
    assert (text, result["content"]) == ("of Kate\n", "of Kate\n")


async def test_a_long_file_is_read_in_parts(tools: ToolTenant) -> None:
    await put(tools, "skills/pdf/long.md", b"ab" * 30_000)
    text, result = await call(tools, name="pdf", path="long.md")
    assert (len(result["content"]), result["next_offset"]) == (50_000, 50_000)
    assert text.endswith("[continue with offset 50000]")
    _, rest = await call(tools, name="pdf", path="long.md", offset=50_000)
    assert (result["content"] + rest["content"], "next_offset" in rest) == ("ab" * 30_000, False)


@pytest.mark.parametrize(
    ("arguments", "refusal", "message"),
    [
        ({"name": "none"}, NotFound, "no such skill: none"),
        ({"name": "bad"}, ValidationError, "the skill bad is invalid: SKILL.md: it must"),
        ({"name": "pdf", "path": "../x"}, NotFound, "the skill pdf has no file ../x"),
        ({"name": "pdf", "path": "logo.png"}, ValidationError, "is not text; commands find it at"),
        ({"name": "pdf", "path": "link"}, ValidationError, "links are not followed"),
        ({"path": "data.txt"}, ValidationError, "path needs the name of a skill"),
    ],
)
async def test_what_cannot_be_read_is_refused(
    tools: ToolTenant, arguments: Any, refusal: type[Refusal], message: str
) -> None:
    await put(tools, "skills/pdf/link", b"/etc/passwd", type=LINK_TYPE)
    with pytest.raises(refusal, match=message):
        await call(tools, **arguments)


async def test_a_shared_session_has_no_skills(tools: ToolTenant) -> None:
    context = structs.replace(tools.context, audience=Audience.SHARED)
    reply = await calls.run_call(context, "skill", {})
    assert reply.is_error
    assert "not available in a shared session" in reply.content
    tools.context = context
    assert "missing" in await tools.call("bash", command="echo ${CARREL_SKILLS-missing}; ls -A")


async def test_a_run_reads_the_skills_of_its_start(tools: ToolTenant) -> None:
    run = await runs.start(tools.ports, tools.owner, RunRequest(agent="kate"))
    await put(tools, "skills/pdf/data.txt", b"changed")
    tools.context = structs.replace(tools.context, run=run)
    assert (await call(tools, name="pdf", path="data.txt"))[0] == "of Kate\n"
    assert (await tools.call("bash", command=RUN)).startswith("of Kate\n")


async def test_a_command_runs_a_script_of_a_skill_from_any_directory(tools: ToolTenant) -> None:
    await tools.call("write", file_path="sub/x", content="x")
    assert await tools.call("bash", command=RUN, cwd="sub") == "of Kate\ndone\n"
    assert "bad" not in await tools.call("bash", command="ls $CARREL_SKILLS")
    assert await tools.files() == {"sub/x": b"x"}


async def test_an_agent_without_workspace_has_its_skills_too(ports: Ports) -> None:
    tools = await add_skills(await create_tool_tenant(ports, {"sandbox": BOX}))
    assert await tools.call("bash", command=f"{RUN}; touch kept") == "of Kate\ndone\n"


async def test_an_agent_that_may_not_read_skills_is_not_given_them(tools: ToolTenant) -> None:
    config = {**agents_config(tools), "allowedTools": ["bash"]}
    agent = await agents.patch(tools.ports, tools.owner, "kate", {"config": config})
    tools.context = structs.replace(tools.context, agent=agent)
    assert await tools.call("bash", command="echo ${CARREL_SKILLS-missing}") == "missing\n"


def agents_config(tools: ToolTenant) -> dict[str, Any]:
    config: dict[str, Any] = dict(tools.agent.body["config"])
    return config


async def change_skills(tools: ToolTenant) -> str:
    command = (
        "cd $CARREL_SKILLS; chmod -R u+w .; echo x >> pdf/data.txt; rm pdf/logo.png; mkdir new;"
        " echo y > new/y; cd ../..; echo z > z"
    )
    return await tools.call("bash", command=command)


async def test_what_a_command_changes_in_skills_is_not_saved(tools: ToolTenant) -> None:
    await put_in_workspace(tools, ".carrel/skills/pdf/old", b"old")
    assert READ_ONLY_NOTE in await change_skills(tools)
    assert await tools.files() == {".carrel/skills/pdf/old": b"old", "z": b"z\n"}
    assert await tools.call("bash", command=RUN) == "of Kate\ndone\n"
    assert "old" not in await tools.call("bash", command="ls $CARREL_SKILLS/pdf")


@pytest.mark.parametrize("parent", [".carrel", ".carrel/skills"])
async def test_no_file_or_link_of_a_workspace_takes_the_place_of_the_skills(
    tools: ToolTenant, parent: str
) -> None:
    fake = "mkdir -p evil/skills/pdf/scripts; printf '#!/bin/bash\\necho evil' > evil/skills/pdf/"
    await tools.call("bash", command=f"{fake}scripts/run.sh; chmod +x evil/skills/pdf/scripts/*")
    target = "evil" if parent == ".carrel" else "../evil/skills"
    command = f"rm -rf {parent}; ln -s {target} {parent}; $CARREL_SKILLS/pdf/scripts/run.sh"
    assert READ_ONLY_NOTE in await tools.call("bash", command=command)
    assert list(await tools.files()) == ["evil/skills/pdf/scripts/run.sh"]
    await put(tools, parent, target.encode(), (tools.scope(),), type=LINK_TYPE)
    assert await tools.call("bash", command=RUN) == "of Kate\ndone\n"
    assert parent in await tools.files()


async def test_a_persistent_sandbox_gives_every_command_the_skills_as_they_are(
    tmp_path: File,
) -> None:
    local = LocalSandbox(tmp_path / "sandboxes")
    async with open_ports(tmp_path) as opened:
        tools = await create_tool_tenant(opened, runner=local, persistent=True)
        await add_skills(tools, inherited=True)
        for change in (
            "cd $CARREL_SKILLS; chmod -R u+w .; echo x > pdf/data.txt; echo y > pdf/new",
            "rm -rf .carrel; ln -s /tmp .carrel",
            "rm -rf .carrel; echo x > .carrel",
            "rm -rf .carrel",
        ):
            await tools.call("bash", command=change)
            listed = await tools.call("bash", command=f"{RUN}; ls $CARREL_SKILLS/pdf")
            assert listed == "of Kate\ndone\nSKILL.md\ndata.txt\nlogo.png\nscripts\n", change
        assert await tools.files() == {}
        await local.close()


async def put_in_workspace(tools: ToolTenant, path: str, content: bytes) -> None:
    await files.put(tools.ports, (tools.scope(),), Path(path), content, tools.owner)


@pytest.mark.parametrize("persistent", [False, True])
async def test_skills_are_in_the_local_sandbox(tmp_path: File, persistent: bool) -> None:
    local = LocalSandbox(tmp_path / "sandboxes")
    async with open_ports(tmp_path) as opened:
        tools = await create_tool_tenant(opened, runner=local, persistent=persistent)
        await add_skills(tools, inherited=True)
        assert await tools.call("bash", command=RUN) == "of Kate\ndone\n"
        assert await tools.call("bash", command="mkdir -p a/b; echo 1 > a/b/c") == ""
        listed = await tools.call("bash", command="stat -c '%a %n' $CARREL_SKILLS/pdf/*")
        assert "444 " in listed
        await change_skills(tools)
        assert await tools.files() == {"a/b/c": b"1\n", "z": b"z\n"}
        [tree] = await opened.trees.read([tools.scope()])
        assert {path.text for path in tree.directories} <= {"a", "a/b"}
        await put(tools, "skills/pdf/data.txt", b"newer\n")
        expected = "missing\n" if persistent else "newer\n"
        command = "cat ${CARREL_SKILLS-none}/pdf/data.txt 2> /dev/null || echo missing"
        assert await tools.call("bash", command=command) == expected
        await local.close()
        assert await tools.files() == {"a/b/c": b"1\n", "z": b"z\n"}


async def test_a_persistent_sandbox_has_no_own_skills_of_a_private_agent(tmp_path: File) -> None:
    local = LocalSandbox(tmp_path / "sandboxes")
    async with open_ports(tmp_path) as opened:
        tools = await create_tool_tenant(opened, runner=local, persistent=True)
        await add_skills(tools)
        assert await tools.call("bash", command="ls -A; echo ${CARREL_SKILLS-none}") == "none\n"
        agent = await agents.patch(opened, tools.owner, "kate", {"is_shared": True})
        tools.context = structs.replace(tools.context, agent=agent)
        assert await tools.call("bash", command=RUN) == "of Kate\ndone\n"
        await local.close()
