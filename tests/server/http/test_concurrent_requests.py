"""Whatever changes while somebody reads, they are shown what was or what is, and never a mix."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app
from tests.support.stores import open_ports, ports_over

from carrel.adapters.postgres import open_store
from carrel.ports import Ports
from carrel.server.rest.files.response_cache import RESPONSE_CACHE

pytestmark = pytest.mark.anyio
FILES: Final = "/v1/agents/marco/files"
OWN: Final = {"IDENTITY.md": "- **Name:** Marco\n", "notes/a.md": "mine"}
Change = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


@pytest.fixture(params=["sqlite", "postgres"])
async def ports(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Ports]:
    if request.param == "postgres":
        async with open_store(request.getfixturevalue("postgres_url")) as store:
            yield ports_over(store)
        return
    async with open_ports(tmp_path) as opened:
        yield opened


@dataclass
class Interlude:
    """Lets something happen once a certain question was answered."""

    at: int
    happens: Callable[[], Awaitable[Any]]
    asked: int = 0
    over: bool = False


class Interrupted:
    """A port whose answers may be out of date by the time that they are used."""

    def __init__(self, port: Any, interlude: Interlude) -> None:
        self._port, self._interlude = port, interlude

    def __getattr__(self, name: str) -> Any:
        verb, interlude = getattr(self._port, name), self._interlude
        if not callable(verb):
            return verb

        async def asked(*args: Any, **more: Any) -> Any:
            answer = await verb(*args, **more)
            interlude.asked += 1
            if interlude.asked == interlude.at and not interlude.over:
                interlude.over = True
                await interlude.happens()
            return answer

        return asked


def interrupted(ports: Ports, interlude: Interlude) -> Ports:
    trees, records = (Interrupted(port, interlude) for port in (ports.trees, ports.records))
    return dataclasses.replace(ports, trees=trees, records=records)


def renamed(name: str) -> Change:
    return lambda owner: owner.patch("/v1/agents/marco", json={"name": name})


def ruled(*rules: dict[str, str]) -> Change:
    reason = {"Carrel-Reason": "somebody asked for it"}
    return lambda owner: owner.put("/v1/policy", json={"classes": rules}, headers=reason)


CHANGES: Final[dict[str, tuple[Change, Change]]] = {
    "a rename": (renamed("Polo"), renamed("Marco")),
    "a pin": (ruled({"pattern": "SOUL.md", "class": "pinned"}), ruled()),
}
"""What happens, and what undoes it."""

READS: Final[dict[str, tuple[str, dict[str, Any] | None]]] = {
    "a list": (f"{FILES}?content=true", None),
    "a list of some": (f"{FILES}?content=true&prefix=S", None),
    "a file": (f"{FILES}/SOUL.md", None),
    "a list in the dialect": (
        "/api/workspaces/files",
        {"action": "list", "agentId": "marco", "includeContent": True},
    ),
}


async def read(owner: httpx.AsyncClient, what: str) -> httpx.Response:
    url, body = READS[what]
    return await (owner.get(url) if body is None else owner.post(url, json=body))


def told(answer: httpx.Response) -> tuple[int, str | None, str]:
    return answer.status_code, answer.headers.get("etag"), answer.text


async def office(ports: Ports, own: dict[str, str]) -> httpx.AsyncClient:
    owner = await FullApp(ports, create_rest_app(ports)).owner()
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    soul = {"content": "I am {{AGENT_NAME}}"}
    await owner.put("/v1/templates/sales/files/SOUL.md", json=soul)
    made = await owner.post(
        "/v1/agents", json={"slug": "marco", "name": "Marco", "templateId": "sales"}
    )
    assert made.status_code == 201, made.text
    for path, content in own.items():
        put = await owner.put(f"{FILES}/{path}", json={"content": content})
        assert put.status_code == 200, put.text
    return owner


async def agrees(owner: httpx.AsyncClient) -> None:
    """What is listed is what the files say that change here."""
    listed = (await owner.get(f"{FILES}?content=true")).json()["files"]
    dialect = (await read(owner, "a list in the dialect")).json()["files"]
    texts = {row["path"]: row["content"] for row in dialect}
    for row in listed:
        assert row["content"] == texts[row["path"]]
        if row["path"] in {"SOUL.md", "IDENTITY.md"}:
            assert row == (await owner.get(f"{FILES}/{row['path']}")).json()


async def done(change: Change, owner: httpx.AsyncClient) -> None:
    answer = await change(owner)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("own", [{}, OWN], ids=["nothing of its own", "files of its own"])
@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_reader_sees_what_was_or_what_is(
    ports: Ports, change: str, what: str, own: dict[str, str]
) -> None:
    owner, (happens, undo) = await office(ports, own), CHANGES[change]
    at, over = 0, True
    while over:
        at += 1
        before = told(await read(owner, what))
        RESPONSE_CACHE._entries.clear()
        interlude = Interlude(at, lambda: done(happens, owner))
        slow = FullApp(ports, create_rest_app(interrupted(ports, interlude)))
        reader = slow.as_(owner.headers["Authorization"].partition(" ")[2])
        seen, over = told(await read(reader, what)), interlude.over
        after = told(await read(owner, what))
        assert seen in (before, after), f"after question {at}"
        await done(undo, owner)
        await agrees(owner)


async def test_a_run_freezes_names_and_files_of_one_moment(ports: Ports) -> None:
    owner = await office(ports, OWN)
    at, over = 0, True
    while over:
        at += 1
        interlude = Interlude(at, lambda: done(renamed("Polo"), owner))
        slow = FullApp(ports, create_rest_app(interrupted(ports, interlude)))
        reader = slow.as_(owner.headers["Authorization"].partition(" ")[2])
        started = await reader.post("/v1/runs", json={"agentId": "marco"})
        assert started.status_code < 300, started.text
        over, run = interlude.over, f"/v1/runs/{started.json()['runId']}/files"
        soul, identity = [
            (await owner.get(f"{run}/{path}")).json()["content"]
            for path in ("SOUL.md", "IDENTITY.md")
        ]
        names = (soul.removeprefix("I am "), identity.strip().removeprefix("- **Name:** "))
        assert names in (("Marco", "Marco"), ("Polo", "Polo")), f"after question {at}"
        await done(renamed("Marco"), owner)
