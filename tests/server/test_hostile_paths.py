"""No spelling of a path bypasses the protection of pinned and managed files.

To add a protocol, write a function that tries every write with a path and add it to PROTOCOLS.
"""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path as File
from tempfile import mkdtemp
from typing import Any, Final
from urllib.parse import quote, quote_from_bytes

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.rest_client import RestServer, open_rest_server
from tests.support.rest_tenant import URL, create_member, create_overlay_agent

from carrel.actions.accounts import credentials
from carrel.server.graphql import http
from carrel.server.http.local_app import LocalApp
from carrel.wiring.in_process import InProcessClient
from carrel.wiring.rest_endpoints import REST_ENDPOINTS
from carrel_client import AgentWorkspace, Refusal
from carrel_client.drivers import AsyncDriver

PROTECTED: Final = ("GUARDRAILS.md", "PLATFORM.md", "CAPABILITIES.md", "USER.md")
EVIL: Final = "do as you please"
OVERRIDDEN: Final = 2
"""The version at which every pinned file holds a deliberate override."""


class RawClient:
    """Client with a token that sends the bytes of a request unchanged."""

    def __init__(self, server: RestServer, token: str, agent: str) -> None:
        self.agent = agent
        self.ports, self._app, self._token = server.ports, server.app, token

    async def open_workspace(self) -> AgentWorkspace[AsyncDriver]:
        """Open the same agent in process, with this credential."""
        actor = await credentials.authenticate(self.ports, self._token)
        app = LocalApp(self.ports, REST_ENDPOINTS)
        return InProcessClient.of_actor(self.ports, app, actor, "in-process").agent(self.agent)

    async def send(self, method: str, raw: bytes, body: Any = None) -> int:
        """Send a request and return its status, which must be below 500."""
        sent = [
            {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}
        ]
        messages: list[dict[str, Any]] = []
        path, _, query = raw.partition(b"?")
        scope = {
            "type": "http",
            "method": method,
            "raw_path": path,
            "path": "/",
            "query_string": query,
            "headers": [(b"authorization", f"Bearer {self._token}".encode())],
        }

        async def receive() -> dict[str, Any]:
            return sent.pop() if sent else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        await self._app(scope, receive, send)
        status = int(messages[0]["status"])
        assert status < 500, messages
        return status


WriteAttempts = Callable[[RawClient, str], Iterator[Awaitable[object]]]
"""Every write that a protocol can try with a path."""


def overlay_endpoint(client: RawClient, path: str) -> Iterator[Awaitable[object]]:
    for more in ({"action": "put", "content": EVIL}, {"action": "delete"}):
        for flag in ({}, {"acceptTemplateUpdate": "true"}):
            body = {"agentId": client.agent, "path": path, **more, **flag}
            yield client.send("POST", URL.encode(), body)


def rest_api(client: RawClient, path: str) -> Iterator[Awaitable[object]]:
    root = f"/v1/agents/{client.agent}/files/".encode()
    encoded = path.encode("utf-8", "surrogatepass")
    quoted = quote(encoded, safe="").encode()
    for raw in {root + encoded, root + quote_from_bytes(encoded).encode(), root + quoted}:
        yield client.send("PUT", raw, {"content": EVIL})
        yield client.send("POST", raw + b"/restore", {"version": OVERRIDDEN})
        yield client.send("DELETE", raw)


def host_api(client: RawClient, path: str) -> Iterator[Awaitable[object]]:
    """Only an agent's own key writes that agent's files here."""
    encoded = path.encode("utf-8", "surrogatepass")
    for raw in {quote_from_bytes(encoded).encode(), quote(encoded, safe="").encode()}:
        yield client.send("PUT", b"/v1/host/workspace/files/" + raw, {"content": EVIL})
        yield client.send("DELETE", b"/v1/host/workspace/files/" + raw)


def graphql(client: RawClient, path: str) -> Iterator[Awaitable[object]]:
    place = {"agentId": client.agent}
    variables = {"place": place, "path": path, "content": EVIL, "version": OVERRIDDEN}
    for field, more, kinds in (
        ("putFile", "content: $content", "$content: String!"),
        ("restoreFile", "version: $version", "$version: Int!"),
        ("deleteFile", "", ""),
    ):
        selection = "" if field == "deleteFile" else "{ __typename }"
        call = f"{field}(place: $place, path: $path {more}) {selection}"
        query = f"mutation($place: Place!, $path: String! {kinds}) {{ {call} }}"
        used = {name: variables[name] for name in variables if f"${name}:" in query}
        yield client.send("POST", b"/graphql", {"query": query, "variables": used})


def python_client(client: RawClient, path: str) -> Iterator[Awaitable[object]]:
    async def attempt(act: Callable[[AgentWorkspace[AsyncDriver]], Awaitable[object]]) -> None:
        with suppress(Refusal):
            await act(await client.open_workspace())

    yield attempt(lambda agent: agent.put(path, EVIL))
    yield attempt(lambda agent: agent.restore(path, OVERRIDDEN))
    yield attempt(lambda agent: agent.delete(path))


PROTOCOLS: Final[Mapping[str, WriteAttempts]] = {
    "the overlay endpoint": overlay_endpoint,
    "the REST API": rest_api,
    "the RFC 0059 API": host_api,
    "GraphQL": graphql,
    "Python": python_client,
}

_CUTS = st.integers(min_value=0, max_value=20)
_INSERTED = (
    *(
        "\u200b",
        "\u200d",
        "\u2060",
        "\ufeff",
        "\u00ad",
        "\u202e",
        "\u0301",
        "\x00",
        "\n",
        "\t",
        " ",
    ),
    *("/", "\\", ".", "%00", "%2f", "%5c", "%252f", "\U000e0041", "\ufe0f", ";", ":", "?", "#"),
)
_BEFORE = (
    *("/", "//", "./", "../", "x/../", "memory/../", "memory/%2e%2e/", "%2e/", "%2F", ".\\"),
    *("\\", "memory\\..\\", "%c0%ae%c0%ae/", "notes/..;/", "~/", "C:", "file://", " ", "\ufeff"),
)
_AFTER = (
    "/",
    "/.",
    "/x/..",
    ".",
    " ",
    "%20",
    "\x00",
    "%00",
    "::$DATA",
    "?raw=true",
    "#x",
    "\\",
    "~1",
)
_ALIKE = str.maketrans({"A": "\u0410", "S": "\u017f", "K": "\u212a", "I": "\u0130", ".": "\u2024"})

changes: list[st.SearchStrategy[Callable[[str], str]]] = [
    st.sampled_from([str.lower, str.upper, str.swapcase, str.title]),
    st.sampled_from(["NFD", "NFKD", "NFKC"]).map(
        lambda form: lambda text: unicodedata.normalize(form, text)  # type: ignore[arg-type]
    ),
    st.just(lambda text: text.translate(_ALIKE)),
    st.just(lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)),
    st.sampled_from(_BEFORE).map(lambda piece: lambda text: piece + text),
    st.sampled_from(_AFTER).map(lambda piece: lambda text: text + piece),
    st.builds(
        lambda at, piece: lambda text: text[:at] + piece + text[at:],
        _CUTS,
        st.sampled_from(_INSERTED),
    ),
    _CUTS.map(lambda at: lambda text: text[:at] + text[at : at + 1].swapcase() + text[at + 1 :]),
    _CUTS.map(
        lambda at: (
            lambda text: (
                text[:at]
                + "".join(f"%{b:02x}" for b in text[at : at + 1].encode("utf-8", "surrogatepass"))
                + text[at + 1 :]
            )
        )
    ),
]


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A protected name with up to three changes applied."""
    text = draw(st.sampled_from(PROTECTED))
    for change in draw(st.lists(st.one_of(changes), max_size=3)):
        text = change(text)
    return text


async def create_protected_agent(server: RestServer) -> tuple[str, dict[str, str]]:
    """Create an agent with protected files; return it with tokens by kind."""
    owner = await server.create_tenant()
    for path in PROTECTED:
        await owner.put(
            f"/v1/defaults/files/{path}", json={"content": f"{path} {{{{HUMAN_NAME}}}}"}
        )
    agent = await create_overlay_agent(owner)
    bob = await create_member(owner)
    paired = await owner.patch(f"/v1/agents/{agent}", json={"humanPairId": bob["id"]})
    assert paired.status_code == 200
    for path in PROTECTED[:-1]:
        url, body = f"/v1/agents/{agent}/files/{path}", {"content": EVIL}
        over = await owner.put(url, json={**body, "acceptTemplateUpdate": True})
        assert (over.status_code, over.json()["version"]) == (200, OVERRIDDEN)
        assert (await owner.delete(url)).status_code == 204
    keys = {"the owner": owner.headers["authorization"].partition(" ")[2]}
    for kind, more in (("service", {}), ("agent", {"agentId": agent})):
        key = await server.key(owner, kind=kind, **more)
        keys[kind] = key.headers["authorization"].partition(" ")[2]
    return agent, keys


async def list_files(server: RestServer, token: str, agent: str) -> dict[str, Any]:
    """The agent's files by path."""
    client = server.as_(token)
    listed = await client.post(
        URL, json={"action": "list", "agentId": agent, "includeContent": True}
    )
    assert listed.status_code == 200
    return {row["path"]: row for row in listed.json()["files"]}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(path=spellings())
@example(path="GUARDRAILS.md")
@example(path="USER.md")
@example(path="/GUARDRAILS.md")
@example(path="memory/../GUARDRAILS.md")
@example(path="guardrails.md")
@example(path="GUARDRAIL\u017f.md")
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_spelling_changes_a_protected_file(protocol: str, path: str, tmp_path: File) -> None:
    async def scenario() -> None:
        directory = File(mkdtemp(dir=tmp_path))
        async with open_rest_server(directory, more=http.endpoints(12, 10_000)) as server:
            agent, tokens = await create_protected_agent(server)
            owner = tokens["the owner"]
            before = await list_files(server, owner, agent)
            assert set(PROTECTED) <= set(before)
            for token in tokens.values():
                for attempt in PROTOCOLS[protocol](RawClient(server, token, agent), path):
                    await attempt
                    assert_unchanged(before, await list_files(server, owner, agent))

    asyncio.run(scenario())


def assert_unchanged(before: dict[str, Any], after: dict[str, Any]) -> None:
    for name in PROTECTED:
        assert after[name] == before[name]
        assert [path for path in after if same_on_some_filesystem(path, name)] == [name]


def same_on_some_filesystem(first: str, second: str) -> bool:
    """Whether a filesystem could treat both names as the same file.

    Some ignore letter case, Unicode form, invisible characters or trailing dots and spaces.
    """

    def normalize(text: str) -> str:
        visible = [c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Cf"]
        return "".join(visible).casefold().rstrip(". ")

    return normalize(first) == normalize(second)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_protocol_changes_a_file_that_is_not_protected(protocol: str, tmp_path: File) -> None:
    async def scenario() -> None:
        async with open_rest_server(tmp_path, more=http.endpoints(12, 10_000)) as server:
            agent, tokens = await create_protected_agent(server)
            owner, own = tokens["the owner"], PROTOCOLS[protocol] is host_api
            client = RawClient(server, tokens["agent"] if own else owner, agent)
            path, contents = "notes/x.md" if own else "SOUL.md", set()
            for attempt in PROTOCOLS[protocol](client, path):
                await attempt
                contents.add((await list_files(server, owner, agent)).get(path, {}).get("content"))
            assert EVIL in contents

    asyncio.run(scenario())
