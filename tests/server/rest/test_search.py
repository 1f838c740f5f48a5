"""Search over REST: results, access and limits."""

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
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    if request.param != "postgres":
        async with open_full_app(tmp_path) as opened:
            yield opened
        return
    url = request.getfixturevalue("postgres_url")
    async with postgres.open_store(url) as store:
        ports = ports_over(store, directory=tmp_path)
        yield FullApp(ports, create_rest_app(ports))


@pytest.fixture
async def sqlite_server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


async def find_items(client: httpx.AsyncClient, q: str, **more: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/search", params={"q": q, **more})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["next"], body["complete"]) == (None, True)
    items: list[dict[str, Any]] = body["items"]
    return items


async def agent(owner: httpx.AsyncClient, slug: str, **more: Any) -> str:
    created = await owner.post("/v1/agents", json={"slug": slug, "name": slug.title(), **more})
    assert created.status_code == 201, created.text
    return str(created.json()["id"])


async def put(client: httpx.AsyncClient, url: str, content: str) -> None:
    response = await client.put(url, json={"content": content})
    assert response.status_code in {200, 201}, response.text


async def remember(owner: httpx.AsyncClient, id: str, content: str) -> str:
    response = await owner.post(f"/v1/agents/{id}/memories", json={"content": content})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def add_entry(owner: httpx.AsyncClient, id: str, content: str, scope: str = "main") -> str:
    started = await owner.post(f"/v1/agents/{id}/sessions", json={"scope": scope})
    session = started.json()["id"]
    entry = {"role": "user", "content": content}
    response = await owner.post(f"/v1/agents/{id}/sessions/{session}/entries", json=entry)
    assert response.status_code in {200, 201}, response.text
    return str(session)


async def test_files_memories_and_session_entries_are_found_by_words(server: FullApp) -> None:
    owner = await server.owner()
    template = (await owner.post("/v1/templates", json={"slug": "bird", "name": "Bird"})).json()
    reed = await agent(owner, "reed", templateId=template["id"])
    workspace = (await owner.post("/accounts/me/workspaces", json={"name": "notes"})).json()
    places = {
        "agent": f"/v1/agents/{reed}/files/NOTES.md",
        "template": f"/v1/templates/{template['id']}/files/SONGS.md",
        "defaults": "/v1/defaults/files/AIR.md",
        "workspace": f"/v1/workspaces/{workspace['workspaceId']}/files/deep/er.md",
    }
    for scope, url in places.items():
        await put(owner, url, f"# Title\n\nThe Übermäßig kingfisher of the {scope} sings.\n")
    memory = await remember(owner, reed, "a kingfisher came, übermäßig blue")
    session = await add_entry(owner, reed, "did you see the kingfisher, UBERMASSIG fast?")
    items = await find_items(owner, "KINGFISH ubermas")
    by_kind = {(item["kind"], item["scope"]): item for item in items}
    assert set(by_kind) == {("file", scope) for scope in places} | {
        ("memory", "agent"),
        ("session", "agent"),
    }
    assert len(items) == 6
    names = {"agent": "Reed", "template": "Bird", "workspace": "notes", "defaults": None}
    assert all(item["scopeName"] == names[item["scope"]] for item in items)
    own = by_kind["file", "agent"]
    assert (own["path"], own["title"], own["agentId"]) == ("NOTES.md", "NOTES.md", reed)
    assert own["snippet"] == "The Übermäßig kingfisher of the agent sings."
    assert by_kind["file", "template"]["templateId"] == template["id"]
    assert "agentId" not in by_kind["file", "template"]
    assert by_kind["file", "workspace"]["workspaceId"] == workspace["workspaceId"]
    assert by_kind["file", "workspace"]["path"] == "deep/er.md"
    assert by_kind["file", "workspace"]["title"] == "er.md"
    memory_hit = by_kind["memory", "agent"]
    assert (memory_hit["memoryId"], memory_hit["agentId"]) == (memory, reed)
    assert memory_hit["title"] == "Reed"
    session_hit = by_kind["session", "agent"]
    assert (session_hit["sessionId"], session_hit["entry"]) == (session, 1)
    assert "kingfisher" in session_hit["snippet"]
    assert all(item["at"].endswith("Z") for item in items)


async def test_a_question_finds_the_memory_that_names_its_subject(server: FullApp) -> None:
    owner = await server.owner()
    reed = await agent(owner, "reed")
    for n in range(12):
        await remember(owner, reed, f"it is the thing that one must not forget, number {n}")
        await put(owner, f"/v1/agents/{reed}/files/thing-{n}.md", "what is the thing\n")
    luis = await remember(owner, reed, "Luis is allergic to peanuts")
    [first, *_] = await find_items(owner, "what is the thing Luis must not eat?")
    assert (first["memoryId"], first["offset"]) == (luis, 0)


async def test_a_hit_shows_the_passage_and_where_it_is(server: FullApp) -> None:
    owner = await server.owner()
    reed = await agent(owner, "reed")
    text = "a line of the file\n" * 300 + "here is the wren, in a reed\n" + "the end\n" * 300
    await put(owner, f"/v1/agents/{reed}/files/NOTES.md", text)
    session = await add_entry(owner, reed, text)
    for hit in await find_items(owner, "where is a wren"):
        assert hit["snippet"] == "here is the wren, in a reed"
        assert text[hit["offset"] :].startswith("wren, in a reed")
    listed = await owner.get(f"/v1/agents/{reed}/sessions", params={"q": "where is a wren"})
    [row] = listed.json()["items"]
    [match] = row["matches"]
    assert (row["id"], match["number"], match["truncated"]) == (session, 1, True)
    assert "here is the wren" in match["preview"]
    assert text[match["offset"] :].startswith(match["preview"])


async def test_deleted_text_is_not_found(server: FullApp) -> None:
    owner = await server.owner()
    reed = await agent(owner, "reed")
    url = f"/v1/agents/{reed}/files/NOTES.md"
    await put(owner, url, "a heron and a wren\n")
    assert len(await find_items(owner, "heron wren")) == 1
    assert len(await find_items(owner, "heron ostrich")) == 1
    assert await find_items(owner, "and ostrich") == []
    await put(owner, url, "a wren alone\n")
    assert await find_items(owner, "heron") == []
    assert len(await find_items(owner, "wren")) == 1
    [named, *_] = await find_items(owner, "wren notes")
    assert named["path"] == "NOTES.md", "a path has words too"
    await owner.delete(url)
    assert await find_items(owner, "wren") == []


async def test_an_agents_key_finds_only_its_own_stack_and_records(server: FullApp) -> None:
    owner = await server.owner()
    template = (await owner.post("/v1/templates", json={"slug": "bird", "name": "Bird"})).json()
    reed = await agent(owner, "reed", templateId=template["id"])
    finch = await agent(owner, "finch")
    await put(owner, f"/v1/templates/{template['id']}/files/A.md", "gannet of {{agent_name}}\n")
    await put(owner, f"/v1/agents/{finch}/files/B.md", "gannet of another\n")
    await put(owner, f"{FILES}/C.md", "gannet of the workspace\n")
    for id in (reed, finch):
        await remember(owner, id, f"gannet {id}")
        await add_entry(owner, id, f"gannet {id}")
    created = await owner.post("/v1/keys", json={"name": "k", "kind": "agent", "agentId": reed})
    items = await find_items(server.as_(created.json()["key"]), "gannet")
    assert sorted(item["kind"] for item in items) == ["file", "memory", "session"]
    assert {item["agentId"] for item in items} == {reed}
    assert {item["scope"] for item in items} == {"agent"}
    [file] = [item for item in items if item["kind"] == "file"]
    assert file["path"] == "A.md"
    served = await server.as_(created.json()["key"]).get(f"/v1/agents/{reed}/files/A.md")
    assert file["snippet"] == served.json()["content"].strip()
    created = await owner.post(
        "/v1/keys", json={"name": "k", "kind": "service", "workspace": "default"}
    )
    [file] = await find_items(server.as_(created.json()["key"]), "gannet")
    assert (file["path"], file["workspaceId"]) == ("C.md", "default")


async def test_search_finds_nothing_of_another_tenant(server: FullApp) -> None:
    ada, eve = await server.owner("acme"), await server.owner("other")
    reed = await agent(ada, "reed")
    await put(ada, f"/v1/agents/{reed}/files/NOTES.md", "the puffin\n")
    await remember(ada, reed, "the puffin")
    await add_entry(ada, reed, "the puffin")
    assert len(await find_items(ada, "puffin")) == 3
    assert await find_items(eve, "puffin") == []


async def test_entries_of_a_shared_session_are_not_found(server: FullApp) -> None:
    owner = await server.owner()
    reed = await agent(owner, "reed")
    await add_entry(owner, reed, "the bittern", "shared")
    assert await find_items(owner, "bittern") == []
    main = await add_entry(owner, reed, "the bittern")
    assert [item["sessionId"] for item in await find_items(owner, "bittern")] == [main]


async def test_an_identical_copy_in_an_agent_is_found_only_in_the_inherited_layer(
    sqlite_server: FullApp,
) -> None:
    owner = await sqlite_server.owner()
    reed = await agent(owner, "reed")
    await put(owner, "/v1/defaults/files/NOTES.md", "the dunnock\n")
    await put(owner, f"/v1/agents/{reed}/files/NOTES.md", "the dunnock\n")
    assert [hit["scope"] for hit in await find_items(owner, "dunnock")] == ["defaults"]
    await put(owner, f"/v1/agents/{reed}/files/NOTES.md", "the dunnock and more\n")
    assert {hit["scope"] for hit in await find_items(owner, "dunnock")} == {"defaults", "agent"}


async def test_kinds_and_limit_narrow_the_results(sqlite_server: FullApp) -> None:
    owner = await sqlite_server.owner()
    reed = await agent(owner, "reed")
    for n in range(4):
        await put(owner, f"/v1/agents/{reed}/files/{n}.md", "the siskin\n")
    await remember(owner, reed, "the siskin")
    await add_entry(owner, reed, "the siskin")
    assert len(await find_items(owner, "siskin", limit=3)) == 3
    assert {hit["kind"] for hit in await find_items(owner, "siskin", kinds="memories")} == {
        "memory"
    }
    both = await find_items(owner, "siskin", kinds="memories,sessions")
    assert {hit["kind"] for hit in both} == {"memory", "session"}
    assert await find_items(owner, "?!") == []


@pytest.mark.parametrize(
    "query",
    [
        *("", "q=", "limit=3", "q=%ff", "q=a&x=1", "q=" + "a" * 201),
        *("q=a&kinds=", "q=a&kinds=keys", "q=a&kinds=files,", "q=a&limit=0", "q=a&limit=101"),
    ],
)
async def test_an_invalid_query_is_400(sqlite_server: FullApp, query: str) -> None:
    answer = await (await sqlite_server.owner()).get(f"/v1/search?{query}")
    assert answer.status_code == 400


async def test_unusual_characters_in_a_query_are_accepted(sqlite_server: FullApp) -> None:
    owner = await sqlite_server.owner()
    reed = await agent(owner, "reed")
    await remember(owner, reed, "a wren")
    await add_entry(owner, reed, "a wren")
    for strange in ("\x00", '"', "a*", "' OR 1=1", "{owner} : x", BOLD, "漢字", "()&|!:"):
        assert (await owner.get("/v1/search", params={"q": strange})).status_code == 200
    assert len(await find_items(owner, BOLD)) == 2


async def test_search_without_a_token_is_401_and_without_permission_403(
    sqlite_server: FullApp,
) -> None:
    assert (await sqlite_server.as_(None).get("/v1/search?q=a")).status_code == 401
    owner = await sqlite_server.owner()
    created = await owner.post(
        "/v1/keys", json={"name": "k", "kind": "service", "scopes": ["tenant:read"]}
    )
    assert (await sqlite_server.as_(created.json()["key"]).get("/v1/search?q=a")).status_code == 403


async def test_a_snippet_redacts_a_secret_added_after_the_file(sqlite_server: FullApp) -> None:
    owner = await sqlite_server.owner()
    reed = await agent(owner, "reed")
    await put(owner, f"/v1/agents/{reed}/files/A.md", "the lapwing says hunter2-and-more-of-it\n")
    assert "hunter2" in (await find_items(owner, "lapwing"))[0]["snippet"]
    await owner.put("/v1/secrets/word", json={"value": "hunter2-and-more-of-it"})
    assert "hunter2" not in (await find_items(owner, "lapwing"))[0]["snippet"]


async def test_a_search_that_reaches_a_limit_is_marked_incomplete(
    sqlite_server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await sqlite_server.owner()
    ids = [await agent(owner, slug) for slug in ("reed", "finch", "wren")]
    for id in ids:
        await put(owner, f"/v1/agents/{id}/files/A.md", f"the avocet of {id}\n")
        await remember(owner, id, "the avocet")
        await add_entry(owner, id, "the avocet")
    complete = (await owner.get("/v1/search?q=avocet")).json()
    assert (len(complete["items"]), complete["complete"]) == (9, True)
    for module, name, limit, kinds in (
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
            patched.setattr(module, name, limit)
            part = (await owner.get(f"/v1/search?q=avocet&kinds={kinds}")).json()
        assert not part["complete"], (name, kinds)
        assert len(part["items"]) < 3, (name, kinds)


async def test_a_file_with_nul_is_not_found_and_a_long_snippet_is_cut(
    sqlite_server: FullApp,
) -> None:
    owner = await sqlite_server.owner()
    await put(owner, f"{FILES}/a.md", "\x00 the twite\n")
    assert await find_items(owner, "the twite") == []
    await put(owner, f"{FILES}/b.md", "the twite " + "x" * 5000 + "\n")
    [hit] = await find_items(owner, "twite")
    assert len(hit["snippet"]) <= 162


async def test_for_a_shared_audience_only_files_that_it_may_see_are_found(server: FullApp) -> None:
    owner = await server.owner()
    reed = await agent(owner, "reed")
    created = await owner.post("/accounts/me/workspaces", json={"name": "notes"})
    workspace = f"/v1/workspaces/{created.json()['workspaceId']}/files"
    visible = [f"/v1/agents/{reed}/files/SOUL.md", f"{workspace}/report.csv"]
    hidden = [f"/v1/agents/{reed}/files/plans.md", f"/v1/agents/{reed}/files/MEMORY.md"]
    hidden += [f"{workspace}/MEMORY.md", "/v1/defaults/files/AIR.md", f"{FILES}/mine.md"]
    for number, url in enumerate((*visible, *hidden)):
        await put(owner, url, f"kingfisher {number}")
    await remember(owner, reed, "a kingfisher came")
    await add_entry(owner, reed, "did you see the kingfisher?")
    assert len(await find_items(owner, "kingfisher")) == len(visible) + len(hidden) + 2
    for scope in ("shared", "channel"):
        items = await find_items(owner, "kingfisher", scope=scope)
        assert {item["path"] for item in items} == {"SOUL.md", "report.csv"}
