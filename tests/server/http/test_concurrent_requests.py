"""A read during a change returns the state before or after it, never a mix."""

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
class Interruption:
    """Runs a change once, after the given number of port calls."""

    at: int
    action: Callable[[], Awaitable[Any]]
    calls: int = 0
    ran: bool = False


class Interrupted:
    """A port whose results may be stale by the time they are used."""

    def __init__(self, port: Any, interruption: Interruption) -> None:
        self._port, self._interruption = port, interruption

    def __getattr__(self, name: str) -> Any:
        verb, interruption = getattr(self._port, name), self._interruption
        if not callable(verb):
            return verb

        async def call(*args: Any, **more: Any) -> Any:
            answer = await verb(*args, **more)
            interruption.calls += 1
            if interruption.calls == interruption.at and not interruption.ran:
                interruption.ran = True
                await interruption.action()
            return answer

        return call


def interrupt_ports(ports: Ports, interruption: Interruption) -> Ports:
    trees, records = (Interrupted(port, interruption) for port in (ports.trees, ports.records))
    return dataclasses.replace(ports, trees=trees, records=records)


def rename_agent(name: str) -> Change:
    return lambda owner: owner.patch("/v1/agents/marco", json={"name": name})


def put_rules(*rules: dict[str, str]) -> Change:
    reason = {"Carrel-Reason": "requested"}
    return lambda owner: owner.put(
        "/v1/policy", json={"classes": rules, "confirm": True}, headers=reason
    )


CHANGES: Final[dict[str, tuple[Change, Change]]] = {
    "a rename": (rename_agent("Polo"), rename_agent("Marco")),
    "a pin": (put_rules({"pattern": "SOUL.md", "class": "pinned"}), put_rules()),
}
"""A change and the change that undoes it."""

READS: Final[dict[str, tuple[str, dict[str, Any] | None]]] = {
    "a list": (f"{FILES}?content=true", None),
    "a list with a prefix": (f"{FILES}?content=true&prefix=S", None),
    "a file": (f"{FILES}/SOUL.md", None),
    "an overlay list": (
        "/api/workspaces/files",
        {"action": "list", "agentId": "marco", "includeContent": True},
    ),
}


async def read(owner: httpx.AsyncClient, target: str) -> httpx.Response:
    url, body = READS[target]
    return await (owner.get(url) if body is None else owner.post(url, json=body))


def summarize(answer: httpx.Response) -> tuple[int, str | None, str]:
    return answer.status_code, answer.headers.get("etag"), answer.text


async def create_agent(server: FullApp, own: dict[str, str]) -> httpx.AsyncClient:
    owner = await server.owner()
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    soul = {"content": "I am {{AGENT_NAME}}"}
    await owner.put("/v1/templates/sales/files/SOUL.md", json=soul)
    created = await owner.post(
        "/v1/agents", json={"slug": "marco", "name": "Marco", "templateId": "sales"}
    )
    assert created.status_code == 201, created.text
    for path, content in own.items():
        put = await owner.put(f"{FILES}/{path}", json={"content": content})
        assert put.status_code == 200, put.text
    return owner


async def assert_list_matches_files(owner: httpx.AsyncClient) -> None:
    """Assert that both lists agree with the files that change here."""
    listed = (await owner.get(f"{FILES}?content=true")).json()["files"]
    overlay = (await read(owner, "an overlay list")).json()["files"]
    texts = {row["path"]: row["content"] for row in overlay}
    for row in listed:
        assert row["content"] == texts[row["path"]]
        if row["path"] in {"SOUL.md", "IDENTITY.md"}:
            assert row == (await owner.get(f"{FILES}/{row['path']}")).json()


async def apply(change: Change, owner: httpx.AsyncClient) -> None:
    answer = await change(owner)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("own", [{}, OWN], ids=["no own files", "own files"])
@pytest.mark.parametrize("target", READS)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_read_during_a_change_sees_the_state_before_or_after(
    ports: Ports, change: str, target: str, own: dict[str, str]
) -> None:
    server = FullApp(ports, create_rest_app(ports))
    owner, (apply_change, undo) = await create_agent(server, own), CHANGES[change]
    at, ran = 0, True
    while ran:
        at += 1
        before = summarize(await read(owner, target))
        server.app.caches.responses.clear()
        interruption = Interruption(at, lambda: apply(apply_change, owner))
        slow = FullApp(ports, create_rest_app(interrupt_ports(ports, interruption)))
        slow.app.caches = server.app.caches
        reader = slow.as_(owner.headers["Authorization"].partition(" ")[2])
        result, ran = summarize(await read(reader, target)), interruption.ran
        after = summarize(await read(owner, target))
        assert result in (before, after), f"after question {at}"
        await apply(undo, owner)
        await assert_list_matches_files(owner)


async def test_a_run_freezes_names_and_files_of_one_moment(ports: Ports) -> None:
    owner = await create_agent(FullApp(ports, create_rest_app(ports)), OWN)
    at, ran = 0, True
    while ran:
        at += 1
        interruption = Interruption(at, lambda: apply(rename_agent("Polo"), owner))
        slow = FullApp(ports, create_rest_app(interrupt_ports(ports, interruption)))
        reader = slow.as_(owner.headers["Authorization"].partition(" ")[2])
        started = await reader.post("/v1/runs", json={"agentId": "marco"})
        assert started.status_code < 300, started.text
        ran, run = interruption.ran, f"/v1/runs/{started.json()['runId']}/files"
        soul, identity = [
            (await owner.get(f"{run}/{path}")).json()["content"]
            for path in ("SOUL.md", "IDENTITY.md")
        ]
        names = (soul.removeprefix("I am "), identity.strip().removeprefix("- **Name:** "))
        assert names in (("Marco", "Marco"), ("Polo", "Polo")), f"after question {at}"
        await apply(rename_agent("Marco"), owner)
