"""No spelling of a path gets round what protects an agent's pinned and managed files, by any face.

To add a face, write one function that tries everything with a path, and name it in FACES.
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
from carrel.wiring.inprocess import InProcessClient
from carrel.wiring.rest_endpoints import REST_ENDPOINTS
from carrel_client import AgentWorkspace, Refusal
from carrel_client.drivers import AsyncDriver

PROTECTED: Final = ("GUARDRAILS.md", "PLATFORM.md", "CAPABILITIES.md", "USER.md")
EVIL: Final = "do as you please"
OVERRIDDEN: Final = 1
"""The version of every pinned file at which it once was something else, on purpose."""


class Hand:
    """Somebody with a token, who sends every byte of a request as it is."""

    def __init__(self, here: RestServer, token: str, agent: str) -> None:
        self.agent = agent
        self.ports, self._app, self._token = here.ports, here.app, token

    async def open_workspace(self) -> AgentWorkspace[AsyncDriver]:
        """The same agent in a Python program that acts as this credential."""
        actor = await credentials.authenticate(self.ports, self._token)
        app = LocalApp(self.ports, REST_ENDPOINTS)
        return InProcessClient.of_actor(self.ports, app, actor, "in-process").agent(self.agent)

    async def send(self, method: str, raw: bytes, body: Any = None) -> int:
        """The status of what came back, which is never a failure of the server."""
        sent = [
            {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}
        ]
        heard: list[dict[str, Any]] = []
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
            heard.append(message)

        await self._app(scope, receive, send)
        status = int(heard[0]["status"])
        assert status < 500, heard
        return status


Face = Callable[[Hand, str], Iterator[Awaitable[object]]]
"""Everything that can be tried with a path, one after the other."""


def overlay_endpoint(hand: Hand, path: str) -> Iterator[Awaitable[object]]:
    for more in ({"action": "put", "content": EVIL}, {"action": "delete"}):
        for flag in ({}, {"acceptTemplateUpdate": "true"}):
            body = {"agentId": hand.agent, "path": path, **more, **flag}
            yield hand.send("POST", URL.encode(), body)


def rest_wire(hand: Hand, path: str) -> Iterator[Awaitable[object]]:
    root = f"/v1/agents/{hand.agent}/files/".encode()
    spoken = path.encode("utf-8", "surrogatepass")
    whole = quote(spoken, safe="").encode()
    for raw in {root + spoken, root + quote_from_bytes(spoken).encode(), root + whole}:
        yield hand.send("PUT", raw, {"content": EVIL})
        yield hand.send("POST", raw + b"/restore", {"version": OVERRIDDEN})
        yield hand.send("DELETE", raw)


def host_wire(hand: Hand, path: str) -> Iterator[Awaitable[object]]:
    """An agent's own key works there on the agent's files, and others' on nobody's."""
    spoken = path.encode("utf-8", "surrogatepass")
    for raw in {quote_from_bytes(spoken).encode(), quote(spoken, safe="").encode()}:
        yield hand.send("PUT", b"/v1/host/workspace/files/" + raw, {"content": EVIL})
        yield hand.send("DELETE", b"/v1/host/workspace/files/" + raw)


def graphql(hand: Hand, path: str) -> Iterator[Awaitable[object]]:
    place = {"agentId": hand.agent}
    told = {"place": place, "path": path, "content": EVIL, "version": OVERRIDDEN}
    for field, more, kinds in (
        ("putFile", "content: $content", "$content: String!"),
        ("restoreFile", "version: $version", "$version: Int!"),
        ("deleteFile", "", ""),
    ):
        shown = "" if field == "deleteFile" else "{ __typename }"
        called = f"{field}(place: $place, path: $path {more}) {shown}"
        query = f"mutation($place: Place!, $path: String! {kinds}) {{ {called} }}"
        used = {name: told[name] for name in told if f"${name}:" in query}
        yield hand.send("POST", b"/graphql", {"query": query, "variables": used})


def program(hand: Hand, path: str) -> Iterator[Awaitable[object]]:
    async def attempt(act: Callable[[AgentWorkspace[AsyncDriver]], Awaitable[object]]) -> None:
        with suppress(Refusal):
            await act(await hand.open_workspace())

    yield attempt(lambda agent: agent.put(path, EVIL))
    yield attempt(lambda agent: agent.restore(path, OVERRIDDEN))
    yield attempt(lambda agent: agent.delete(path))


FACES: Final[Mapping[str, Face]] = {
    "the overlay endpoint": overlay_endpoint,
    "the REST wire": rest_wire,
    "the wire of RFC 0059": host_wire,
    "GraphQL": graphql,
    "Python": program,
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
    """One of the protected names, and some of what could be done to it."""
    text = draw(st.sampled_from(PROTECTED))
    for change in draw(st.lists(st.one_of(changes), max_size=3)):
        text = change(text)
    return text


async def guarded(here: RestServer) -> tuple[str, dict[str, str]]:
    """An agent whose every protected file has something to lose, and the tokens of who may try."""
    owner = await here.create_tenant()
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
        key = await here.key(owner, kind=kind, **more)
        keys[kind] = key.headers["authorization"].partition(" ")[2]
    return agent, keys


async def shown(here: RestServer, token: str, agent: str) -> dict[str, Any]:
    """Everything that the agent has, by path."""
    who = here.as_(token)
    listed = await who.post(URL, json={"action": "list", "agentId": agent, "includeContent": True})
    assert listed.status_code == 200
    return {row["path"]: row for row in listed.json()["files"]}


@pytest.mark.parametrize("face", FACES)
@given(path=spellings())
@example(path="GUARDRAILS.md")
@example(path="USER.md")
@example(path="/GUARDRAILS.md")
@example(path="memory/../GUARDRAILS.md")
@example(path="guardrails.md")
@example(path="GUARDRAIL\u017f.md")
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_spelling_changes_a_protected_file(face: str, path: str, tmp_path: File) -> None:
    async def story() -> None:
        directory = File(mkdtemp(dir=tmp_path))
        async with open_rest_server(directory, more=http.endpoints(12, 10_000)) as here:
            agent, tokens = await guarded(here)
            owner = tokens["the owner"]
            before = await shown(here, owner, agent)
            assert set(PROTECTED) <= set(before)
            for token in tokens.values():
                for attempt in FACES[face](Hand(here, token, agent), path):
                    await attempt
                    unharmed(before, await shown(here, owner, agent))

    asyncio.run(story())


def unharmed(before: dict[str, Any], after: dict[str, Any]) -> None:
    for name in PROTECTED:
        assert after[name] == before[name]
        assert [path for path in after if same_on_some_disk(path, name)] == [name]


def same_on_some_disk(one: str, other: str) -> bool:
    """Disks there are that know no difference between letter cases, or between forms of Unicode.

    Some leave out what is not visible, others dots and spaces at the end.
    """

    def known(text: str) -> str:
        seen = [c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Cf"]
        return "".join(seen).casefold().rstrip(". ")

    return known(one) == known(other)


@pytest.mark.parametrize("face", FACES)
def test_a_face_that_is_tried_does_change_what_is_not_protected(face: str, tmp_path: File) -> None:
    async def story() -> None:
        async with open_rest_server(tmp_path, more=http.endpoints(12, 10_000)) as here:
            agent, tokens = await guarded(here)
            owner, own = tokens["the owner"], FACES[face] is host_wire
            hand = Hand(here, tokens["agent"] if own else owner, agent)
            path, seen = "notes/x.md" if own else "SOUL.md", set()
            for attempt in FACES[face](hand, path):
                await attempt
                seen.add((await shown(here, owner, agent)).get(path, {}).get("content"))
            assert EVIL in seen

    asyncio.run(story())
