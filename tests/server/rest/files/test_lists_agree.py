"""After any changes, a list agrees with every file read by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path as File
from typing import Any, Final

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.full_app import FullApp, create_rest_app
from tests.support.services import files
from tests.support.stores import ports_over

from carrel.adapters import postgres, sqlite

AGENTS: Final = ("marco", "kate")
TEMPLATES: Final = ("sales", "care")
PATHS: Final = ("SOUL.md", "USER.md", "GUARDRAILS.md", "IDENTITY.md", "notes/a.md", "ä b.md")
TEXTS: Final = (
    "",
    "plain",
    "{{AGENT_NAME}}",
    "{{AGENT_NAME}} of {{TENANT_NAME}} for {{HUMAN_NAME}} ({{HUMAN_TITLE}})",
    "- **Name:** {{AGENT_NAME}}\n",
    "- **Name:** Eve\n",
    "1{{HUMAN_NAME}}.\n\u2028\0",
    "{{UNKNOWN}}",
)
NAMES: Final = ("Marco", "Kate", '"etag":"\\u0000"', "{{TENANT_NAME}}", "7", "<!-- x -->")
CLASSES: Final = ("live", "pinned", "managed")
Act = tuple[str, str, dict[str, Any] | None]

agents, templates, paths = map(st.sampled_from, (AGENTS, TEMPLATES, PATHS))
names, texts = st.sampled_from(NAMES), st.sampled_from(TEXTS)
layers = st.one_of(
    st.just("/v1/defaults"),
    templates.map("/v1/templates/{}".format),
    agents.map("/v1/agents/{}".format),
)
bodies = st.builds(lambda text: {"content": text, "acceptTemplateUpdate": True}, texts)
rules = st.builds(
    lambda path, kind: {"pattern": path, "class": kind}, paths, st.sampled_from(CLASSES)
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "name": names,
        "templateId": st.one_of(st.none(), templates),
        "humanPairId": st.one_of(st.none(), st.just("me")),
    },
)
acts: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("PUT"), st.builds("{}/files/{}".format, layers, paths), bodies),
    st.tuples(st.just("DELETE"), st.builds("{}/files/{}".format, layers, paths), st.none()),
    st.tuples(st.just("PATCH"), agents.map("/v1/agents/{}".format), changes),
    st.tuples(st.just("PATCH"), st.just("/v1/tenants/me"), st.builds(lambda n: {"name": n}, names)),
    st.tuples(st.just("PATCH"), st.just("/v1/people/me"), st.builds(lambda n: {"name": n}, names)),
    st.tuples(
        st.just("PUT"),
        st.just("/v1/policy"),
        st.lists(rules, max_size=3, unique_by=lambda rule: rule["pattern"]).map(
            lambda classes: {"classes": classes}
        ),
    ),
    st.tuples(
        st.just("ACCEPT"), st.builds("/v1/agents/{}/pins/{}".format, agents, paths), st.none()
    ),
)


@asynccontextmanager
async def open_servers(kind: str, at: str | File) -> AsyncIterator[tuple[FullApp, FullApp]]:
    """Two servers on one database."""
    async with AsyncExitStack() as stack:
        servers = []
        for _ in "12":
            opened: Any = sqlite.open_store(File(at)) if kind == "sqlite" else None
            store = await stack.enter_async_context(opened or postgres.open_store(str(at)))
            ports = ports_over(store)
            servers.append(FullApp(ports, create_rest_app(ports)))
        yield servers[0], servers[1]


class TwoServerTenant:
    def __init__(self, servers: tuple[FullApp, FullApp], owner: httpx.AsyncClient) -> None:
        token = owner.headers["Authorization"].partition(" ")[2]
        self.clients = [server.as_(token) for server in servers]
        self.me = ""

    async def create_records(self) -> None:
        client = self.clients[0]
        self.me = (await client.get("/v1/people")).json()["items"][0]["id"]
        for slug in TEMPLATES:
            await client.post("/v1/templates", json={"slug": slug, "name": slug})
        for slug in AGENTS:
            body = {"slug": slug, "name": slug, "templateId": "sales"}
            assert (await client.post("/v1/agents", json=body)).status_code == 201

    async def act(self, act: Act, at: int) -> None:
        """Apply a change; it may be refused but must not be a server error."""
        method, url, body = act
        client, url = self.clients[at], url.replace("/me", f"/{self.me}", "people" in url)
        if method == "ACCEPT":
            agent, _, path = url.partition("/pins/")
            pins = (await client.get(f"{agent}/pins")).json()["items"]
            latest = next((pin.get("latestSha256") for pin in pins if pin["path"] == path), None)
            method, url = "POST", f"{url}/accept"
            body = {"sha256": latest or "0" * 64}
        if body and body.get("humanPairId"):
            body = {**body, "humanPairId": self.me}
        head = {"Carrel-Reason": "because"}
        answer = await client.request(method, url, json=body, headers=head)
        assert answer.status_code < 500, answer.text

    async def assert_lists_agree(self, raw: str = "") -> None:
        for agent in AGENTS:
            url = f"/v1/agents/{agent}/files"
            first, second = [
                await client.get(f"{url}?content=true{raw}") for client in self.clients
            ]
            assert (first.headers["etag"], first.text) == (second.headers["etag"], second.text)
            listed = {row["path"]: row for row in first.json()["files"]}
            for number, path in enumerate(PATHS):
                client = self.clients[number % 2]
                answer = await client.get(f"{url}/{path}?{raw.removeprefix('&')}")
                body = answer.json() if answer.status_code == 200 else None
                assert body == listed.get(path)

    async def assert_every_form_agrees(self) -> None:
        await self.assert_lists_agree("&raw=true")
        url, client = "/v1/agents/kate/files", self.clients[1]
        full = await client.get(f"{url}?content=true")
        cached = {"If-None-Match": full.headers["etag"]}
        assert (await client.get(f"{url}?content=true", headers=cached)).status_code == 304
        rows = full.json()["files"]
        filtered = (await client.get(f"{url}?content=true&prefix=S")).json()["files"]
        assert filtered == [row for row in rows if row["path"].startswith("S")]
        for count in (1, 3, 1000):
            last = (await client.get(f"{url}?content=true&last={count}")).json()["files"]
            assert last == rows[-count:]
        bare = (await client.get(url)).json()["files"]
        assert [{**row, **bare_row} for row, bare_row in zip(rows, bare, strict=True)] == rows


async def apply_steps(
    servers: tuple[FullApp, FullApp], slug: str, steps: list[tuple[Act, int]]
) -> None:
    tenant = TwoServerTenant(servers, await servers[0].owner(slug))
    await tenant.create_records()
    for act, at in steps:
        await tenant.act(act, at)
        await tenant.assert_lists_agree()
    await tenant.assert_every_form_agrees()


def lists_agree(kind: str, at: str | File, examples: int) -> None:
    number = 0

    with asyncio.Runner() as runner:
        opened = open_servers(kind, at)
        servers = runner.run(opened.__aenter__())

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(st.tuples(acts, st.integers(0, 1)), min_size=1, max_size=12))
        def check(steps: list[tuple[Act, int]]) -> None:
            nonlocal number
            number += 1
            runner.run(apply_steps(servers, f"t{number}", steps))

        try:
            check()
        finally:
            runner.run(opened.__aexit__(None, None, None))


def test_lists_agree_with_files_over_sqlite(tmp_path: File) -> None:
    lists_agree("sqlite", files.fresh(tmp_path / "carrel.db"), 15)


def test_lists_agree_with_files_over_postgresql(postgres_url: str) -> None:
    lists_agree("postgres", postgres_url, 5)
