"""Provenance: from an answer to versions, authors and reviews, and from a run to its answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.tenants import sign_in_as

pytestmark = pytest.mark.anyio

GUARDRAILS = "GUARDRAILS.md"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    await owner.post("/v1/templates", json={"slug": "desk", "name": "Desk"})
    await put(owner, "/v1/templates/desk", GUARDRAILS, "Be careful.\n")
    await put(owner, "/v1/templates/desk", "SOUL.md", "I listen.\n")
    body = {"slug": "kate", "name": "Kate", "templateId": "desk"}
    assert (await owner.post("/v1/agents", json=body)).status_code == 201
    return owner


async def put(owner: httpx.AsyncClient, root: str, path: str, content: str, **body: Any) -> None:
    done = await owner.put(
        f"{root}/files/{path}",
        json={"content": content, **body},
        headers={"Carrel-Reason": f"write {path}"},
    )
    assert done.status_code == 200, done.text


async def accept(owner: httpx.AsyncClient) -> None:
    pins = (await owner.get("/v1/agents/kate/pins")).json()["items"]
    [pin] = [pin for pin in pins if pin["path"] == GUARDRAILS]
    body = {"sha256": pin["latestSha256"]}
    done = await owner.post(f"/v1/agents/kate/pins/{GUARDRAILS}/accept", json=body)
    assert done.status_code == 200, done.text


async def answer(owner: httpx.AsyncClient, session: str = "chat/1") -> dict[str, Any]:
    """A finished run with a question and an answer in a session."""
    started = await owner.post(
        "/v1/runs", json={"agentId": "kate", "sessionId": session, "workflowId": "reply"}
    )
    entries = [{"role": "user", "content": "May I?"}, {"role": "assistant", "content": "No."}]
    body = {"status": "completed", "entries": entries}
    assert (await owner.patch(started.json()["statusUrl"], json=body)).status_code == 200
    run: dict[str, Any] = started.json()
    return run


async def provenance(owner: httpx.AsyncClient, run: str) -> dict[str, Any]:
    chain = await owner.get(f"/v1/runs/{run}/provenance")
    assert chain.status_code == 200, chain.text
    result: dict[str, Any] = chain.json()
    return result


def file_of(chain: dict[str, Any], path: str) -> dict[str, Any]:
    [row] = [row for row in chain["files"] if row["path"] == path]
    return dict(row)


async def test_an_answer_leads_to_its_run_prompt_versions_authors_and_review(
    owner: httpx.AsyncClient,
) -> None:
    await put(owner, "/v1/templates/desk", GUARDRAILS, "Be very careful.\n")
    await accept(owner)
    run = await answer(owner)
    await put(owner, "/v1/templates/desk", GUARDRAILS, "Newer.\n")
    await put(owner, "/v1/templates/desk", "SOUL.md", "Newer.\n")

    chain = await owner.get("/v1/agents/kate/sessions/chat%2F1/entries/2/provenance")

    assert chain.status_code == 200, chain.text
    body = chain.json()
    assert (body["entry"]["role"], body["entry"]["preview"]) == ("assistant", "No.")
    assert body["entries"] == [body["entry"]]
    assert body["run"]["runId"] == run["runId"]
    assert (body["run"]["sessionId"], body["run"]["workflowId"]) == ("chat/1", "reply")
    assert body["run"]["startedBy"]["name"] == "Ada"
    blocks = {block["path"]: block for block in body["prompt"]["blocks"]}
    assert blocks[GUARDRAILS]["kept"] == "kept"

    pinned = file_of(body, GUARDRAILS)
    assert (pinned["inPrompt"], pinned["source"]) == (True, "template-pinned")
    assert pinned["written"]["layer"] == "agent"
    review = pinned["review"]
    assert (review["kind"], review["by"]["name"]) == ("accepted", "Ada")
    assert review["reason"].startswith(f"accept {GUARDRAILS}")
    keys = (await owner.get("/v1/keys")).json()["items"]
    assert review["key"]["id"] in {key["id"] for key in keys}
    origin = pinned["origin"]
    assert (origin["layer"], origin["version"]) == ("template", 2)
    assert (origin["author"]["name"], origin["reason"]) == ("Ada", f"write {GUARDRAILS}")

    soul = file_of(body, "SOUL.md")
    assert (soul["source"], soul["review"], soul["origin"]) == ("template", None, None)
    assert (soul["written"]["version"], soul["written"]["reason"]) == (1, "write SOUL.md")


async def test_a_run_leads_to_its_answers_and_to_what_it_was_made_of(
    owner: httpx.AsyncClient,
) -> None:
    run = await answer(owner)
    hello = {"role": "user", "content": "x" * 300, "runId": run["runId"]}
    await owner.post("/v1/agents/kate/sessions", json={"id": "other"})
    await owner.post("/v1/agents/kate/sessions/other/entries", json=hello)
    await owner.post("/v1/agents/kate/sessions/other/entries", json={**hello, "runId": None})

    chain = await provenance(owner, run["runId"])

    entries = [(entry["sessionId"], entry["number"]) for entry in chain["entries"]]
    assert entries == [("chat/1", 1), ("chat/1", 2), ("other", 1)]
    assert (chain["entries"][2]["truncated"], chain["moreEntries"]) == (True, False)
    frozen = (await owner.get(f"/v1/runs/{run['runId']}")).json()["workspace"]
    assert [row["path"] for row in chain["files"]] == [row["path"] for row in frozen]
    assert [row["version"] for row in chain["files"]] == [row["version"] for row in frozen]
    prompt = (await owner.get(f"/v1/runs/{run['runId']}/prompt")).json()
    assert chain["prompt"]["etag"] == prompt["etag"]
    assert chain["prompt"]["blocks"] == prompt["blocks"]
    recorded = file_of(chain, GUARDRAILS)
    assert recorded["review"]["kind"] == "recorded"
    assert recorded["origin"]["layer"] == "template"


async def test_an_override_and_a_roll_back_are_told_apart(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/kate", GUARDRAILS, "For Kate alone.\n", acceptTemplateUpdate=True)
    overridden = file_of(await provenance(owner, (await answer(owner))["runId"]), GUARDRAILS)
    assert (overridden["review"]["kind"], overridden["origin"]) == ("overridden", None)
    await put(owner, "/v1/templates/desk", GUARDRAILS, "New.\n")
    await accept(owner)
    rolled = await owner.post(f"/v1/agents/kate/pins/{GUARDRAILS}/roll-back", json={})
    if rolled.status_code == 404:
        rolled = await owner.post(f"/v1/agents/kate/pins/{GUARDRAILS}/rollback", json={})
    assert rolled.status_code == 200, rolled.text
    chain = file_of(await provenance(owner, (await answer(owner))["runId"]), GUARDRAILS)
    assert chain["review"]["kind"] == "rolled-back"


async def test_a_version_names_the_run_that_wrote_it(owner: httpx.AsyncClient) -> None:
    writer = (await owner.post("/v1/runs", json={"agentId": "kate"})).json()["runId"]
    done = await owner.put(
        "/v1/agents/kate/files/notes/x.md",
        json={"content": "learned\n"},
        headers={"Carrel-Run": writer},
    )
    assert done.status_code == 200, done.text
    chain = await provenance(owner, (await answer(owner))["runId"])
    assert file_of(chain, "notes/x.md")["written"]["runId"] == writer


async def test_a_removed_entry_and_a_released_snapshot_are_gone(owner: httpx.AsyncClient) -> None:
    run = (await answer(owner))["runId"]
    await owner.post("/v1/agents/kate/sessions/chat%2F1/pop")
    entry = "/v1/agents/kate/sessions/chat%2F1/entries"
    assert (await owner.get(f"{entry}/2/provenance")).status_code == 404
    assert len((await provenance(owner, run))["entries"]) == 1
    await owner.patch(f"/v1/runs/{run}", json={"kept": False})
    chain = (await owner.get(f"{entry}/1/provenance")).json()
    assert (chain["run"]["kept"], chain["prompt"], chain["files"]) == (False, None, [])
    await owner.delete("/v1/agents/kate/sessions/chat%2F1")
    assert (await provenance(owner, run))["entries"] == []


async def test_an_erased_text_is_not_in_the_provenance(owner: httpx.AsyncClient) -> None:
    await owner.put("/v1/agents/kate/files/notes/x.md", json={"content": "of Zenobia\n"})
    run = (await answer(owner))["runId"]
    await owner.put("/v1/agents/kate/files/notes/x.md", json={"content": "clean\n"})
    redacted = await owner.post("/v1/agents/kate/files/notes/x.md/redact", json={"version": 1})
    assert redacted.status_code in {200, 204}, redacted.text
    assert file_of(await provenance(owner, run), "notes/x.md")["written"]["redacted"] is True


async def test_an_entry_without_a_run_has_no_more_than_itself(owner: httpx.AsyncClient) -> None:
    await owner.post("/v1/agents/kate/sessions", json={"id": "s"})
    body = {"role": "user", "content": "hello"}
    await owner.post("/v1/agents/kate/sessions/s/entries", json=body)
    chain = (await owner.get("/v1/agents/kate/sessions/s/entries/1/provenance")).json()
    assert (chain["run"], chain["prompt"], chain["files"]) == (None, None, [])
    for number, status in (("2", 404), ("0", 400), ("x", 400), ("-1", 400), ("9" * 20, 400)):
        url = f"/v1/agents/kate/sessions/s/entries/{number}/provenance"
        assert (await owner.get(url)).status_code == status
    assert (await owner.get("/v1/runs/run_missing/provenance")).status_code == 404


async def test_names_of_people_are_for_callers_who_may_read_people(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    run = (await answer(owner))["runId"]
    machine = await server.key(owner)
    chain = await provenance(machine, run)
    assert chain["run"]["startedBy"]["name"] is None
    assert file_of(chain, "SOUL.md")["written"]["author"]["id"].startswith("per_")


async def test_other_members_get_nothing_of_a_private_agent(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    run = (await answer(owner))["runId"]
    body = {"name": "Bob", "email": "bob@acme.example", "role": "member"}
    bob = (await owner.post("/v1/people", json=body)).json()["id"]
    member = server.as_(await sign_in_as(owner, bob))
    assert (await member.get(f"/v1/runs/{run}/provenance")).status_code == 404
    entry = "/v1/agents/kate/sessions/chat%2F1/entries/1/provenance"
    assert (await member.get(entry)).status_code == 403


async def test_the_number_of_queries_does_not_depend_on_the_files(
    server: FullApp, owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count_calls(run: str) -> list[str]:
        calls: list[str] = []
        with monkeypatch.context() as patch:
            for port in ("trees", "blobs", "records", "runs", "sessions"):
                store = getattr(server.ports, port)
                for name in (n for n in dir(type(store)) if not n.startswith("_")):
                    method = getattr(type(store), name)

                    def spy(*args: Any, _of: Any = method, _name: str = name, **kw: Any) -> Any:
                        calls.append(_name)
                        return _of(*args, **kw)

                    patch.setattr(type(store), name, spy)
            await provenance(owner, run)
        return calls

    few = await answer(owner)
    await count_calls(few["runId"])
    before = await count_calls(few["runId"])
    for n in range(30):
        await put(owner, "/v1/agents/kate", f"notes/{n}.md", f"{n}\n")
    many = await answer(owner, "chat/2")
    await count_calls(many["runId"])
    after = await count_calls(many["runId"])
    assert len(after) <= len(before)
