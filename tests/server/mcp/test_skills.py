"""Skills over MCP: listed by the extension and read as resources."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents
from tests.server.mcp.test_wire import modern
from tests.support.mcp_clients import McpServer

pytestmark = pytest.mark.anyio
SKILL_MD = "---\nname: pdf\ndescription: For {{AGENT_NAME}}\nmetadata:\n  v: 1\n---\n# How\n"


@pytest.fixture
async def slug(server: McpServer) -> str:
    slug = await server.agent()
    async with server.as_() as owner:
        for path, text in (("pdf/SKILL.md", SKILL_MD), ("pdf/a b.md", "x"), ("bad/SKILL.md", "x")):
            url = f"/v1/agents/{slug}/files/skills/{path}"
            assert (await owner.put(url, json={"content": text})).status_code == 200
    return slug


async def call(server: McpServer, slug: str, method: str, query: str = "", **params: Any) -> Any:
    body, head = modern(method, **params)
    async with server.as_() as wire:
        answer = await wire.post(f"/mcp/agents/{slug}{query}", json=body, headers=head)
    return answer.json()


async def test_the_extension_is_declared(server: McpServer, slug: str) -> None:
    answer = await call(server, slug, "server/discover")
    assert answer["result"]["capabilities"]["extensions"] == {"io.modelcontextprotocol/skills": {}}


async def test_valid_skills_are_listed_with_the_digests_of_what_is_served(
    server: McpServer, slug: str
) -> None:
    result = (await call(server, slug, "skills/list"))["result"]
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == (
        "complete",
        0,
        "private",
    )
    [skill] = result["skills"]
    text = SKILL_MD.replace("{{AGENT_NAME}}", slug)
    assert skill == {
        "uri": "skill://pdf/SKILL.md",
        "frontmatter": {"name": "pdf", "description": f"For {slug}", "metadata": {"v": "1"}},
        "resources": [
            {"uri": "skill://pdf/SKILL.md", "digest": digest(text), "size": len(text)},
            {"uri": "skill://pdf/a%20b.md", "digest": digest("x"), "size": 1},
        ],
    }
    got = await call(server, slug, "skills/get", uri="skill://pdf/SKILL.md")
    assert got["result"]["skill"] == skill


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


async def test_files_of_skills_are_resources(server: McpServer, slug: str) -> None:
    async with server.client(slug) as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert "skill://{name}/{+path}" in {template.uri_template for template in templates}
        [content] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(content, TextResourceContents)
        assert content.text == SKILL_MD.replace("{{AGENT_NAME}}", slug)
        [content] = (await client.read_resource("skill://pdf/a%20b.md")).contents
        assert isinstance(content, TextResourceContents)
        assert content.text == "x"
        for wrong in (
            "pdf/none",
            "bad/SKILL.md",
            "none/SKILL.md",
            "pdf",
            "",
            "../SOUL.md",
            "pdf/%FF",
        ):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(f"skill://{wrong}")


@pytest.mark.parametrize("uri", ["skill://bad/SKILL.md", "skill://pdf/a%20b.md", "x", ""])
async def test_an_unknown_skill_is_refused(server: McpServer, slug: str, uri: str) -> None:
    assert (await call(server, slug, "skills/get", uri=uri))["error"]["code"] == -32602


async def test_a_shared_session_sees_no_skills(server: McpServer, slug: str) -> None:
    listed = await call(server, slug, "skills/list", "?scope=shared")
    assert listed["result"]["skills"] == []
    async with server.client(slug, query="?scope=shared") as client:
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("skill://pdf/SKILL.md")


async def test_a_skill_is_a_prompt_with_its_instructions(server: McpServer, slug: str) -> None:
    listed = (await call(server, slug, "prompts/list"))["result"]["prompts"]
    assert [prompt["name"] for prompt in listed] == ["system", "skill"]
    arguments = {"name": "pdf", "request": "Merge these."}
    answer = await call(server, slug, "prompts/get", name="skill", arguments=arguments)
    resource, text = [message["content"] for message in answer["result"]["messages"]]
    assert resource["resource"] == {
        "uri": "skill://pdf/SKILL.md",
        "mimeType": "text/markdown",
        "text": SKILL_MD.replace("{{AGENT_NAME}}", slug),
    }
    assert text["text"] == "Merge these."
    alone = await call(server, slug, "prompts/get", name="skill", arguments={"name": "pdf"})
    assert alone["result"]["messages"][1]["content"]["text"] == "Use the skill pdf."
    ref = {"type": "ref/prompt", "name": "skill"}
    for value, names in (("p", ["pdf"]), ("b", [])):
        argument = {"name": "name", "value": value}
        completed = await call(server, slug, "completion/complete", ref=ref, argument=argument)
        assert completed["result"]["completion"]["values"] == names


@pytest.mark.parametrize(
    "arguments", [{}, {"name": "bad"}, {"name": "x"}, {"name": "pdf", "n": "1"}]
)
async def test_a_prompt_of_an_unknown_skill_is_refused(
    server: McpServer, slug: str, arguments: dict[str, str]
) -> None:
    answer = await call(server, slug, "prompts/get", name="skill", arguments=arguments)
    assert answer["error"]["code"] == -32602


async def test_a_shared_session_and_an_agent_without_skills_have_no_such_prompt(
    server: McpServer, slug: str
) -> None:
    for agent, query in ((slug, "?scope=shared"), (await server.agent(), "")):
        listed = (await call(server, agent, "prompts/list", query))["result"]["prompts"]
        assert [prompt["name"] for prompt in listed] == ["system"]
        answer = await call(
            server, agent, "prompts/get", query, name="skill", arguments={"name": "pdf"}
        )
        assert answer["error"]["code"] == -32602
