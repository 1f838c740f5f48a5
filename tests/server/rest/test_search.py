"""Search through the wire: what is found, by whom, and how much is looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, create_rest_app, open_full_app
from tests.support.stores import ports_over

from carrel.actions.search import file_search, search
from carrel.adapters import postgres

pytestmark = pytest.mark.anyio
BOLD = "\N{MATHEMATICAL BOLD SMALL W}ren"


@pytest.fixture(params=["sqlite", "postgres"])
async def here(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    if request.param != "postgres":
        async with open_full_app(tmp_path) as opened:
            yield opened
        return
    url = request.getfixturevalue("postgres_url")
    async with postgres.open_store(url) as store:
        ports = ports_over(store, directory=tmp_path)
        yield FullApp(ports, create_rest_app(ports))


@pytest.fixture
async def one(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


async def found(who: httpx.AsyncClient, q: str, **more: Any) -> list[dict[str, Any]]:
    answer = await who.get("/v1/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["next"], body["complete"]) == (None, True)
    items: list[dict[str, Any]] = body["items"]
    return items


async def agent(owner: httpx.AsyncClient, slug: str, **more: Any) -> str:
    made = await owner.post("/v1/agents", json={"slug": slug, "name": slug.title(), **more})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def put(who: httpx.AsyncClient, url: str, content: str) -> None:
    done = await who.put(url, json={"content": content})
    assert done.status_code in {200, 201}, done.text


async def remember(owner: httpx.AsyncClient, id: str, content: str) -> str:
    done = await owner.post(f"/v1/agents/{id}/memories", json={"content": content})
    assert done.status_code == 201, done.text
    return str(done.json()["id"])


async def say(owner: httpx.AsyncClient, id: str, content: str, scope: str = "main") -> str:
    started = await owner.post(f"/v1/agents/{id}/sessions", json={"scope": scope})
    session = started.json()["id"]
    said = {"role": "user", "content": content}
    done = await owner.post(f"/v1/agents/{id}/sessions/{session}/entries", json=said)
    assert done.status_code in {200, 201}, done.text
    return str(session)


async def test_files_memories_and_what_was_said_are_found_by_their_words(here: FullApp) -> None:
    owner = await here.owner()
    template = (await owner.post("/v1/templates", json={"slug": "bird", "name": "Bird"})).json()
    reed = await agent(owner, "reed", templateId=template["id"])
    room = (await owner.post("/accounts/me/workspaces", json={"name": "notes"})).json()
    places = {
        "agent": f"/v1/agents/{reed}/files/NOTES.md",
        "template": f"/v1/templates/{template['id']}/files/SONGS.md",
        "defaults": "/v1/defaults/files/AIR.md",
        "workspace": f"/v1/workspaces/{room['workspaceId']}/files/deep/er.md",
    }
    for scope, url in places.items():
        await put(owner, url, f"# Title\n\nThe Übermäßig kingfisher of the {scope} sings.\n")
    memory = await remember(owner, reed, "a kingfisher came, übermäßig blue")
    session = await say(owner, reed, "did you see the kingfisher, UBERMASSIG fast?")
    items = await found(owner, "KINGFISH ubermas")
    author = {(one["kind"], one["scope"]): one for one in items}
    assert set(author) == {("file", scope) for scope in places} | {
        ("memory", "agent"),
        ("session", "agent"),
    }
    assert len(items) == 6
    own = author["file", "agent"]
    assert (own["path"], own["title"], own["agentId"]) == ("NOTES.md", "NOTES.md", reed)
    assert own["snippet"] == "The Übermäßig kingfisher of the agent sings."
    assert author["file", "template"]["templateId"] == template["id"]
    assert "agentId" not in author["file", "template"]
    assert author["file", "workspace"]["workspaceId"] == room["workspaceId"]
    assert author["file", "workspace"]["path"] == "deep/er.md"
    assert author["file", "workspace"]["title"] == "er.md"
    told = author["memory", "agent"]
    assert (told["memoryId"], told["agentId"]) == (memory, reed)
    assert told["title"] == "Reed"
    said = author["session", "agent"]
    assert (said["sessionId"], said["entry"]) == (session, 1)
    assert "kingfisher" in said["snippet"]
    assert all(one["at"].endswith("Z") for one in items)


async def test_every_word_is_needed_and_what_is_gone_is_not_found(here: FullApp) -> None:
    owner = await here.owner()
    reed = await agent(owner, "reed")
    url = f"/v1/agents/{reed}/files/NOTES.md"
    await put(owner, url, "a heron and a wren\n")
    assert len(await found(owner, "heron wren")) == 1
    assert await found(owner, "heron ostrich") == []
    await put(owner, url, "a wren alone\n")
    assert await found(owner, "heron") == []
    assert len(await found(owner, "wren")) == 1
    assert len(await found(owner, "wren notes")) == 1, "a path has words too"
    await owner.delete(url)
    assert await found(owner, "wren") == []


async def test_an_agents_key_finds_what_it_sees_itself(here: FullApp) -> None:
    owner = await here.owner()
    template = (await owner.post("/v1/templates", json={"slug": "bird", "name": "Bird"})).json()
    reed = await agent(owner, "reed", templateId=template["id"])
    finch = await agent(owner, "finch")
    await put(owner, f"/v1/templates/{template['id']}/files/A.md", "gannet of {{agent_name}}\n")
    await put(owner, f"/v1/agents/{finch}/files/B.md", "gannet of another\n")
    await put(owner, f"{FILES}/C.md", "gannet of nobody\n")
    for id in (reed, finch):
        await remember(owner, id, f"gannet {id}")
        await say(owner, id, f"gannet {id}")
    made = await owner.post("/v1/keys", json={"name": "k", "kind": "agent", "agentId": reed})
    items = await found(here.as_(made.json()["key"]), "gannet")
    assert sorted(one["kind"] for one in items) == ["file", "memory", "session"]
    assert {one["agentId"] for one in items} == {reed}
    assert {one["scope"] for one in items} == {"agent"}
    [file] = [one for one in items if one["kind"] == "file"]
    assert file["path"] == "A.md"
    seen = await here.as_(made.json()["key"]).get(f"/v1/agents/{reed}/files/A.md")
    assert file["snippet"] == seen.json()["content"].strip()
    made = await owner.post(
        "/v1/keys", json={"name": "k", "kind": "service", "workspace": "default"}
    )
    [file] = await found(here.as_(made.json()["key"]), "gannet")
    assert (file["path"], file["workspaceId"]) == ("C.md", "default")


async def test_nobody_finds_what_is_another_tenants(here: FullApp) -> None:
    ada, eve = await here.owner("acme"), await here.owner("other")
    reed = await agent(ada, "reed")
    await put(ada, f"/v1/agents/{reed}/files/NOTES.md", "the puffin\n")
    await remember(ada, reed, "the puffin")
    await say(ada, reed, "the puffin")
    assert len(await found(ada, "puffin")) == 3
    assert await found(eve, "puffin") == []


async def test_what_was_said_in_a_shared_session_is_not_found(here: FullApp) -> None:
    owner = await here.owner()
    reed = await agent(owner, "reed")
    await say(owner, reed, "the bittern", "shared")
    assert await found(owner, "bittern") == []
    main = await say(owner, reed, "the bittern")
    assert [one["sessionId"] for one in await found(owner, "bittern")] == [main]


async def test_an_agents_copy_of_what_is_above_it_is_found_above(one: FullApp) -> None:
    owner = await one.owner()
    reed = await agent(owner, "reed")
    await put(owner, "/v1/defaults/files/NOTES.md", "the dunnock\n")
    await put(owner, f"/v1/agents/{reed}/files/NOTES.md", "the dunnock\n")
    assert [hit["scope"] for hit in await found(owner, "dunnock")] == ["defaults"]
    await put(owner, f"/v1/agents/{reed}/files/NOTES.md", "the dunnock and more\n")
    assert {hit["scope"] for hit in await found(owner, "dunnock")} == {"defaults", "agent"}


async def test_kinds_and_limits_narrow_what_is_found(one: FullApp) -> None:
    owner = await one.owner()
    reed = await agent(owner, "reed")
    for n in range(4):
        await put(owner, f"/v1/agents/{reed}/files/{n}.md", "the siskin\n")
    await remember(owner, reed, "the siskin")
    await say(owner, reed, "the siskin")
    assert len(await found(owner, "siskin", limit=3)) == 3
    assert {hit["kind"] for hit in await found(owner, "siskin", kinds="memories")} == {"memory"}
    some = await found(owner, "siskin", kinds="memories,sessions")
    assert {hit["kind"] for hit in some} == {"memory", "session"}
    assert await found(owner, "?!") == []


@pytest.mark.parametrize(
    "asked",
    [
        *("", "q=", "limit=3", "q=%ff", "q=a&x=1", "q=" + "a" * 201),
        *("q=a&kinds=", "q=a&kinds=keys", "q=a&kinds=files,", "q=a&limit=0", "q=a&limit=101"),
    ],
)
async def test_what_is_no_question_is_400(one: FullApp, asked: str) -> None:
    answer = await (await one.owner()).get(f"/v1/search?{asked}")
    assert answer.status_code == 400


async def test_strange_questions_are_answered(one: FullApp) -> None:
    owner = await one.owner()
    reed = await agent(owner, "reed")
    await remember(owner, reed, "a wren")
    await say(owner, reed, "a wren")
    for strange in ("\x00", '"', "a*", "' OR 1=1", "{owner} : x", BOLD, "漢字", "()&|!:"):
        assert (await owner.get("/v1/search", params={"q": strange})).status_code == 200
    assert len(await found(owner, BOLD)) == 2


async def test_a_stranger_and_a_key_that_may_not_read_find_nothing(one: FullApp) -> None:
    assert (await one.as_(None).get("/v1/search?q=a")).status_code == 401
    owner = await one.owner()
    made = await owner.post(
        "/v1/keys", json={"name": "k", "kind": "service", "scopes": ["tenant:read"]}
    )
    assert (await one.as_(made.json()["key"]).get("/v1/search?q=a")).status_code == 403


async def test_a_snippet_shows_no_secret_that_became_known_since(one: FullApp) -> None:
    owner = await one.owner()
    reed = await agent(owner, "reed")
    await put(owner, f"/v1/agents/{reed}/files/A.md", "the lapwing says hunter2-and-more-of-it\n")
    assert "hunter2" in (await found(owner, "lapwing"))[0]["snippet"]
    await owner.put("/v1/secrets/word", json={"value": "hunter2-and-more-of-it"})
    assert "hunter2" not in (await found(owner, "lapwing"))[0]["snippet"]


async def test_more_than_one_question_looks_at_is_told(
    one: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await one.owner()
    ids = [await agent(owner, slug) for slug in ("reed", "finch", "wren")]
    for id in ids:
        await put(owner, f"/v1/agents/{id}/files/A.md", f"the avocet of {id}\n")
        await remember(owner, id, "the avocet")
        await say(owner, id, "the avocet")
    whole = (await owner.get("/v1/search?q=avocet")).json()
    assert (len(whole["items"]), whole["complete"]) == (9, True)
    for room, name, most, kinds in (
        (search, "MAX_AGENTS", 2, "files"),
        (search, "MAX_AGENTS_FOR_FILES", 2, "files"),
        (search, "MAX_AGENTS_FOR_ENTRIES", 2, "memories"),
        (search, "MAX_AGENTS_FOR_ENTRIES", 2, "sessions"),
        (search, "MAX_HELD_CHARS", 20, "memories"),
        (file_search, "MAX_FILES", 2, "files"),
        (file_search, "MAX_BYTES", 90, "files"),
        (file_search, "MAX_FILE_BYTES", 10, "files"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(room, name, most)
            part = (await owner.get(f"/v1/search?q=avocet&kinds={kinds}")).json()
        assert not part["complete"], (name, kinds)
        assert len(part["items"]) < 3, (name, kinds)


async def test_what_cannot_be_text_is_not_found_and_breaks_nothing(one: FullApp) -> None:
    owner = await one.owner()
    await put(owner, f"{FILES}/a.md", "\x00 the twite\n")
    assert await found(owner, "the twite") == []
    await put(owner, f"{FILES}/b.md", "the twite " + "x" * 5000 + "\n")
    [hit] = await found(owner, "twite")
    assert len(hit["snippet"]) <= 162
