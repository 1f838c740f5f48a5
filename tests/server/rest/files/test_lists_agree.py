"""Whatever has happened, a list says of every file what the file says of itself."""

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
    "- **Name:** Somebody\n",
    "1{{HUMAN_NAME}}.\n\u2028\0",
    "{{NOBODY}}",
)
NAMES: Final = ("Marco", "Kate", '"etag":"\\u0000"', "{{TENANT_NAME}}", "7", "<!-- x -->")
CLASSES: Final = ("live", "pinned", "managed")
Act = tuple[str, str, dict[str, Any] | None]

agents, templates, paths = map(st.sampled_from, (AGENTS, TEMPLATES, PATHS))
names, texts = st.sampled_from(NAMES), st.sampled_from(TEXTS)
homes = st.one_of(
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
    st.tuples(st.just("PUT"), st.builds("{}/files/{}".format, homes, paths), bodies),
    st.tuples(st.just("DELETE"), st.builds("{}/files/{}".format, homes, paths), st.none()),
    st.tuples(st.just("PATCH"), agents.map("/v1/agents/{}".format), changes),
    st.tuples(st.just("PATCH"), st.just("/v1/tenants/me"), st.builds(lambda n: {"name": n}, names)),
    st.tuples(st.just("PATCH"), st.just("/v1/people/me"), st.builds(lambda n: {"name": n}, names)),
    st.tuples(
        st.just("PUT"),
        st.just("/v1/policy"),
        st.lists(rules, max_size=3, unique_by=lambda rule: rule["pattern"]).map(
            lambda some: {"classes": some}
        ),
    ),
    st.tuples(
        st.just("ACCEPT"), st.builds("/v1/agents/{}/pins/{}".format, agents, paths), st.none()
    ),
)


@asynccontextmanager
async def houses(kind: str, at: str | File) -> AsyncIterator[tuple[FullApp, FullApp]]:
    """Two servers on one database."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in "12":
            opened: Any = sqlite.open_store(File(at)) if kind == "sqlite" else None
            store = await stack.enter_async_context(opened or postgres.open_store(str(at)))
            ports = ports_over(store)
            found.append(FullApp(ports, create_rest_app(ports)))
        yield found[0], found[1]


class Scene:
    def __init__(self, servers: tuple[FullApp, FullApp], owner: httpx.AsyncClient) -> None:
        token = owner.headers["Authorization"].partition(" ")[2]
        self.clients = [server.as_(token) for server in servers]
        self.me = ""

    async def begin(self) -> None:
        one = self.clients[0]
        self.me = (await one.get("/v1/people")).json()["items"][0]["id"]
        for slug in TEMPLATES:
            await one.post("/v1/templates", json={"slug": slug, "name": slug})
        for slug in AGENTS:
            body = {"slug": slug, "name": slug, "templateId": "sales"}
            assert (await one.post("/v1/agents", json=body)).status_code == 201

    async def act(self, act: Act, at: int) -> None:
        """Refused or not: what matters is what is shown afterwards."""
        method, url, body = act
        who, url = self.clients[at], url.replace("/me", f"/{self.me}", "people" in url)
        if method == "ACCEPT":
            agent, _, path = url.partition("/pins/")
            pins = (await who.get(f"{agent}/pins")).json()["items"]
            latest = next((pin.get("latestSha256") for pin in pins if pin["path"] == path), None)
            method, url = "POST", f"{url}/accept"
            body = {"sha256": latest or "0" * 64}
        if body and body.get("humanPairId"):
            body = {**body, "humanPairId": self.me}
        head = {"Carrel-Reason": "because"}
        answer = await who.request(method, url, json=body, headers=head)
        assert answer.status_code < 500, answer.text

    async def agrees(self, raw: str = "") -> None:
        for agent in AGENTS:
            url = f"/v1/agents/{agent}/files"
            one, other = [await who.get(f"{url}?content=true{raw}") for who in self.clients]
            assert (one.headers["etag"], one.text) == (other.headers["etag"], other.text)
            listed = {row["path"]: row for row in one.json()["files"]}
            for number, path in enumerate(PATHS):
                who = self.clients[number % 2]
                answer = await who.get(f"{url}/{path}?{raw.removeprefix('&')}")
                told = answer.json() if answer.status_code == 200 else None
                assert told == listed.get(path)

    async def agrees_in_every_form(self) -> None:
        await self.agrees("&raw=true")
        url, who = "/v1/agents/kate/files", self.clients[1]
        whole = await who.get(f"{url}?content=true")
        known = {"If-None-Match": whole.headers["etag"]}
        assert (await who.get(f"{url}?content=true", headers=known)).status_code == 304
        rows = whole.json()["files"]
        some = (await who.get(f"{url}?content=true&prefix=S")).json()["files"]
        assert some == [row for row in rows if row["path"].startswith("S")]
        bare = (await who.get(url)).json()["files"]
        assert [{**row, **told} for row, told in zip(rows, bare, strict=True)] == rows


async def story(servers: tuple[FullApp, FullApp], slug: str, told: list[tuple[Act, int]]) -> None:
    scene = Scene(servers, await servers[0].owner(slug))
    await scene.begin()
    for act, at in told:
        await scene.act(act, at)
        await scene.agrees()
    await scene.agrees_in_every_form()


def lists_agree(kind: str, at: str | File, examples: int) -> None:
    number = 0

    with asyncio.Runner() as runner:
        opened = houses(kind, at)
        servers = runner.run(opened.__aenter__())

        @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(st.tuples(acts, st.integers(0, 1)), min_size=1, max_size=12))
        def tell(told: list[tuple[Act, int]]) -> None:
            nonlocal number
            number += 1
            runner.run(story(servers, f"t{number}", told))

        try:
            tell()
        finally:
            runner.run(opened.__aexit__(None, None, None))


def test_lists_agree_with_files_over_sqlite(tmp_path: File) -> None:
    lists_agree("sqlite", files.fresh(tmp_path / "carrel.db"), 15)


def test_lists_agree_with_files_over_postgresql(postgres_url: str) -> None:
    lists_agree("postgres", postgres_url, 5)
