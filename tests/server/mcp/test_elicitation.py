"""Approvals through MCP elicitation at the client."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult
from tests.support.mcp_clients import MODES, OWNER, McpServer, text_of
from tests.support.tenants import sign_in_as

from carrel.server.mcp import elicitation
from carrel.tools.registry import ALL_TOOLS
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

pytestmark = pytest.mark.anyio
RAN: list[str] = []


class Arguments(ToolArguments, frozen=True):
    target: str


async def _launch(context: ToolContext, arguments: Arguments) -> object:
    RAN.append(arguments.target)
    return {"launched": arguments.target}


async def _gate(context: ToolContext, arguments: Arguments) -> ApprovalCheck:
    return ApprovalCheck(requires_approval=True)


LAUNCH = Tool(
    "launch", "Launches something.", Arguments, _launch, writes=True, approval_check=_gate
)


@pytest.fixture(autouse=True)
def launching() -> Iterator[None]:
    """Gives agents a tool that needs approval."""
    RAN.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carrel.tools.calls.ALL_TOOLS", (LAUNCH, *ALL_TOOLS))
        yield


class Person:
    """An elicitation callback that always returns the same answer."""

    def __init__(
        self,
        action: Any,
        fields: Set[str] | None = frozenset({"approved", "reason"}),
        **content: Any,
    ) -> None:
        self.fields = fields
        self.answer = ElicitResult(action=action, content=content or None)
        self.messages: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert self.fields in (None, set(params.requested_schema["properties"]))
        self.messages.append(params.message)
        return self.answer


async def list_open(server: McpServer, slug: str) -> list[dict[str, Any]]:
    async with server.as_() as owner:
        response = await owner.get("/v1/approvals", params={"agent": slug, "status": "requested"})
        return list(response.json()["items"])


async def test_an_approval_at_the_client_runs_the_call_once(server: McpServer) -> None:
    slug = await server.agent()
    person = Person("accept", approved=True, reason="go")
    async with server.client(slug, elicitation_callback=person) as client:
        done = await client.call_tool("launch", {"target": f"{slug} rocket"})
    assert (done.is_error, done.structured_content) == (False, {"launched": f"{slug} rocket"})
    assert [f"{slug} rocket"] == RAN
    [message] = person.messages
    assert f"{slug} wants to call launch" in message
    assert "rocket" in message
    async with server.as_() as owner:
        [approval] = (await owner.get("/v1/approvals", params={"agent": slug})).json()["items"]
        me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    assert (approval["status"], approval["answeredBy"], approval["reason"]) == (
        "finished",
        me,
        "go",
    )


@pytest.mark.parametrize(
    ("person", "status"),
    [
        (Person("accept", approved=False, reason="too loud"), "denied"),
        (Person("accept"), "denied"),
        (Person("decline"), "denied"),
        (Person("cancel"), "requested"),
    ],
)
async def test_anything_but_an_approval_runs_nothing(
    server: McpServer, person: Person, status: str
) -> None:
    slug = await server.agent()
    async with server.client(slug, elicitation_callback=person) as client:
        result = await client.call_tool("launch", {"target": "rocket"})
    assert RAN == []
    async with server.as_() as owner:
        [approval] = (await owner.get("/v1/approvals", params={"agent": slug})).json()["items"]
    assert approval["status"] == status
    if status == "requested":
        assert result.structured_content == {
            "approval": {"id": approval["id"], "status": "requested", "tool": "launch"}
        }
    else:
        assert result.is_error
        assert "denied by a person" in text_of(result)


async def test_an_agent_cannot_approve_its_own_call(server: McpServer) -> None:
    slug = await server.agent()
    for token in (await server.own_key(slug), await server.key(kind="service")):
        person = Person("accept", approved=True)
        async with server.client(slug, token=token, elicitation_callback=person) as client:
            result = await client.call_tool("launch", {"target": "rocket"})
            assert (result.is_error, person.messages, RAN) == (False, [], [])
            assert result.structured_content is not None
            approval_id = result.structured_content["approval"]["id"]
            yes: Any = {"approval": ElicitResult(action="accept", content={"approved": True})}
            with pytest.raises(MCPError, match="may answer"):
                await client.call_tool(
                    "launch", {"target": "rocket"}, input_responses=yes, request_state=approval_id
                )
    assert RAN == []
    assert len(await list_open(server, slug)) == 2


async def test_the_form_shows_the_whole_call_and_its_hidden_characters(server: McpServer) -> None:
    slug = await server.agent()
    person = Person("cancel")
    target = "a\u202eb\x1b\u200b\n" + "x" * (elicitation.MAX_FORM_CHARS - 100) + "end"
    async with server.client(slug, elicitation_callback=person) as client:
        await client.call_tool("launch", {"target": target})
    [message] = person.messages
    shown_target = (
        "a⟨U+202E⟩b⟨U+001B⟩⟨U+200B⟩\n    " + "x" * (elicitation.MAX_FORM_CHARS - 100) + "end"
    )
    assert message == f"{slug} wants to call launch:\ntarget:\n    {shown_target}"


async def test_a_call_that_a_form_cannot_show_is_approved_only_at_the_link(
    server: McpServer,
) -> None:
    slug = await server.agent()
    arguments = {"target": "x" * elicitation.MAX_FORM_CHARS + " hidden"}
    person = Person("accept", fields={"denied", "reason"}, approved=True)
    async with server.client(slug, elicitation_callback=person) as client:
        with pytest.raises(MCPError, match="did not show the whole call"):
            await client.call_tool("launch", arguments)
    [approval] = await list_open(server, slug)
    [message] = person.messages
    assert f"{server.url}/approvals/{approval['id']}" in message
    assert approval["inputHash"] in message
    assert "xxx" not in message
    for keep, status in (
        (Person("accept", fields=None, denied=False), "requested"),
        (Person("accept", fields=None, denied=True, reason="no"), "denied"),
    ):
        async with server.client(slug, elicitation_callback=keep) as client:
            await client.call_tool("launch", arguments)
        async with server.as_() as owner:
            answered_approval = (await owner.get(f"/v1/approvals/{approval['id']}")).json()
        assert answered_approval["status"] == status
    assert RAN == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_without_elicitation_gets_the_waiting_approval(
    server: McpServer, mode: str
) -> None:
    slug = await server.agent()
    async with server.client(slug, mode) as client:
        result = await client.call_tool("launch", {"target": "rocket"})
    [approval] = await list_open(server, slug)
    assert (result.is_error, approval["id"] in text_of(result)) == (False, True)
    assert RAN == []


async def test_an_approval_counts_only_for_its_own_call(server: McpServer) -> None:
    slug, other = await server.agent(), await server.agent()
    yes: Any = {"approval": ElicitResult(action="accept", content={"approved": True})}
    admin = await _admin(server)
    async with server.client(slug, elicitation_callback=Person("cancel")) as client:
        await client.call_tool("launch", {"target": "rocket"})
        [approval_id] = [item["id"] for item in await list_open(server, slug)]
        for target, state in (("bomb", approval_id), ("rocket", "apr_none"), ("rocket", "")):
            with pytest.raises(MCPError):
                await client.call_tool(
                    "launch", {"target": target}, input_responses=yes, request_state=state
                )
    for agent, token in ((other, OWNER), (slug, admin)):
        async with server.client(agent, token=token) as client:
            with pytest.raises(MCPError):
                await client.call_tool(
                    "launch", {"target": "rocket"}, input_responses=yes, request_state=approval_id
                )
    assert RAN == []
    async with server.client(slug) as client:
        done = await client.call_tool(
            "launch", {"target": "rocket"}, input_responses=yes, request_state=approval_id
        )
        again = await client.call_tool(
            "launch", {"target": "rocket"}, input_responses=yes, request_state=approval_id
        )
    assert done.structured_content == again.structured_content == {"launched": "rocket"}
    assert RAN == ["rocket"]


async def test_a_shared_session_gets_no_result_of_a_private_call(server: McpServer) -> None:
    slug, person = await server.agent(), Person("accept", approved=True)
    shared: Any = {"carrel/scope": "shared"}
    async with server.client(slug, elicitation_callback=person) as client:
        await client.call_tool("launch", {"target": "rocket"})
        async with server.as_() as owner:
            listed = await owner.get("/v1/approvals", params={"agent": slug})
        [approval] = listed.json()["items"]
        with pytest.raises(MCPError, match="no such approval"):
            await client.call_tool(
                "launch",
                {"target": "rocket"},
                meta=shared,
                request_state=approval["id"],
            )


async def _admin(server: McpServer) -> str:
    """The token of another admin, who may answer but did not call."""
    async with server.as_() as owner:
        new = {"name": "Ann", "email": "ann@example.org", "role": "admin"}
        created = await owner.post("/v1/people", json=new)
        assert created.status_code == 201, created.text
        return await sign_in_as(owner, created.json()["id"])
