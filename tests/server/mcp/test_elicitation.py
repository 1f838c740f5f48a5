"""Approvals at the client: who is asked there, and whose answer counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestFormParams, ElicitResult
from tests.support.mcp_clients import MODES, OWNER, McpServer, text_of

from carrel.tools import ALL
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

pytestmark = pytest.mark.anyio
RAN: list[str] = []


class Arguments(ToolArguments, frozen=True):
    what: str


async def _launch(context: ToolContext, asked: Arguments) -> object:
    RAN.append(asked.what)
    return {"launched": asked.what}


async def _gate(context: ToolContext, asked: Arguments) -> ApprovalCheck:
    return ApprovalCheck(requires_approval=True)


LAUNCH = Tool(
    "launch", "Launches something.", Arguments, _launch, writes=True, approval_check=_gate
)


@pytest.fixture(autouse=True)
def launching() -> Iterator[None]:
    """An agent has a tool about which somebody is asked."""
    RAN.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("carrel.tools.calls.ALL", (LAUNCH, *ALL))
        yield


class Person:
    """Somebody at a client, who answers the same every time."""

    def __init__(self, action: Any, **content: Any) -> None:
        self.said = ElicitResult(action=action, content=content or None)
        self.shown: list[str] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        assert set(params.requested_schema["properties"]) == {"approved", "reason"}
        self.shown.append(params.message)
        return self.said


async def open_ones(place: McpServer, slug: str) -> list[dict[str, Any]]:
    async with place.as_() as owner:
        found = await owner.get("/v1/approvals", params={"agent": slug, "status": "requested"})
        return list(found.json()["items"])


async def test_who_says_yes_at_the_client_lets_it_run_once(place: McpServer) -> None:
    slug = await place.agent()
    person = Person("accept", approved=True, reason="go")
    async with place.client(slug, elicitation_callback=person) as client:
        done = await client.call_tool("launch", {"what": f"{slug} rocket"})
    assert (done.is_error, done.structured_content) == (False, {"launched": f"{slug} rocket"})
    assert [f"{slug} rocket"] == RAN
    [shown] = person.shown
    assert f"{slug} wants to call launch" in shown
    assert "rocket" in shown
    async with place.as_() as owner:
        [kept] = (await owner.get("/v1/approvals", params={"agent": slug})).json()["items"]
        me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    assert (kept["status"], kept["answeredBy"], kept["reason"]) == ("finished", me, "go")


@pytest.mark.parametrize(
    ("person", "status"),
    [
        (Person("accept", approved=False, reason="too loud"), "denied"),
        (Person("accept"), "denied"),
        (Person("decline"), "denied"),
        (Person("cancel"), "requested"),
    ],
)
async def test_whatever_is_no_yes_runs_nothing(
    place: McpServer, person: Person, status: str
) -> None:
    slug = await place.agent()
    async with place.client(slug, elicitation_callback=person) as client:
        told = await client.call_tool("launch", {"what": "rocket"})
    assert RAN == []
    async with place.as_() as owner:
        [kept] = (await owner.get("/v1/approvals", params={"agent": slug})).json()["items"]
    assert kept["status"] == status
    if status == "requested":
        assert told.structured_content == {
            "approval": {"id": kept["id"], "status": "requested", "tool": "launch"}
        }
    else:
        assert told.is_error
        assert "denied by a person" in text_of(told)


async def test_an_agent_never_says_yes_to_itself(place: McpServer) -> None:
    slug = await place.agent()
    for token in (await place.own_key(slug), await place.key(kind="service")):
        person = Person("accept", approved=True)
        async with place.client(slug, token=token, elicitation_callback=person) as client:
            told = await client.call_tool("launch", {"what": "rocket"})
            assert (told.is_error, person.shown, RAN) == (False, [], [])
            assert told.structured_content is not None
            waits = told.structured_content["approval"]["id"]
            yes: Any = {"approval": ElicitResult(action="accept", content={"approved": True})}
            with pytest.raises(MCPError, match="may answer"):
                await client.call_tool(
                    "launch", {"what": "rocket"}, input_responses=yes, request_state=waits
                )
    assert RAN == []
    assert len(await open_ones(place, slug)) == 2


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_shows_no_forms_is_told_what_is_waited_for(
    place: McpServer, mode: str
) -> None:
    slug = await place.agent()
    async with place.client(slug, mode) as client:
        told = await client.call_tool("launch", {"what": "rocket"})
    [kept] = await open_ones(place, slug)
    assert (told.is_error, kept["id"] in text_of(told)) == (False, True)
    assert RAN == []


async def test_a_yes_counts_for_the_very_call_that_was_asked_about(place: McpServer) -> None:
    slug, other = await place.agent(), await place.agent()
    yes: Any = {"approval": ElicitResult(action="accept", content={"approved": True})}
    admin = await _admin(place)
    async with place.client(slug, elicitation_callback=Person("cancel")) as client:
        await client.call_tool("launch", {"what": "rocket"})
        [waits] = [one["id"] for one in await open_ones(place, slug)]
        for what, state in (("bomb", waits), ("rocket", "apr_none"), ("rocket", "")):
            with pytest.raises(MCPError):
                await client.call_tool(
                    "launch", {"what": what}, input_responses=yes, request_state=state
                )
    for there, token in ((other, OWNER), (slug, admin)):
        async with place.client(there, token=token) as client:
            with pytest.raises(MCPError):
                await client.call_tool(
                    "launch", {"what": "rocket"}, input_responses=yes, request_state=waits
                )
    assert RAN == []
    async with place.client(slug) as client:
        done = await client.call_tool(
            "launch", {"what": "rocket"}, input_responses=yes, request_state=waits
        )
        again = await client.call_tool(
            "launch", {"what": "rocket"}, input_responses=yes, request_state=waits
        )
    assert done.structured_content == again.structured_content == {"launched": "rocket"}
    assert RAN == ["rocket"]


async def _admin(place: McpServer) -> str:
    """The token of another admin, who might answer, but has not asked."""
    async with place.as_() as owner:
        new = {"name": "Ann", "email": "ann@example.org", "role": "admin"}
        made = await owner.post("/v1/people", json=new)
        assert made.status_code == 201, made.text
    return await place.key(kind="person", personId=made.json()["id"])
