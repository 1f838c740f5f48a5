"""Files as bytes: streamed both ways, with ranges, digests and conditions."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, FullApp

from carrel.core.identifiers import digest
from carrel.ports.blobs import PART_BYTES

pytestmark = pytest.mark.anyio
BYTES = {"Content-Type": "application/octet-stream"}
WANT = {"Accept": "application/octet-stream"}
LARGE = random.Random(7).randbytes(3 * PART_BYTES + 12_345)
SECRET = "swordfish-4711-swordfish"


def repr_digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def blob_files(directory: File) -> list[File]:
    return [file for file in (directory / "blobs").rglob("*") if file.is_file()]


async def chunks(content: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff\x00", "é".encode(), LARGE[:300_000], LARGE], ids=len
)
async def test_bytes_in_are_bytes_out(
    byte_owner: httpx.AsyncClient, root: str, content: bytes
) -> None:
    put = await byte_owner.put(
        f"{root}/a/b.png", content=content, headers={"Content-Type": "image/png"}
    )
    assert put.status_code == 200, put.text
    assert "content" not in put.json()
    assert put.json()["sha256"] == hashlib.sha256(content).hexdigest()
    assert put.headers["etag"] == put.json()["etag"]

    got = await byte_owner.get(f"{root}/a/b.png", headers=WANT)
    assert (got.status_code, got.content) == (200, content)
    assert got.headers["content-type"] == put.json()["contentType"] == "image/png"
    assert got.headers["content-length"] == str(len(content))
    assert got.headers["etag"] == put.json()["etag"]
    assert got.headers["repr-digest"] == repr_digest(content)
    assert (got.headers["accept-ranges"], got.headers["carrel-version"]) == ("bytes", "1")

    old = await byte_owner.get(f"{root}/a/b.png", headers=WANT, params={"version": 1})
    assert old.content == content
    head = await byte_owner.head(f"{root}/a/b.png", headers=WANT)
    assert head.content == b""
    assert {**head.headers, "x-request-id": ""} == {**got.headers, "x-request-id": ""}


async def test_a_run_serves_the_bytes_that_it_froze(
    byte_owner: httpx.AsyncClient, root: str
) -> None:
    workspace = root.split("/")[3]
    for name, content in (("a.bin", LARGE[:999]), ("large.bin", LARGE), ("a.txt", b"text")):
        await byte_owner.put(f"{root}/{name}", content=content, headers=BYTES)
        started = await byte_owner.post(
            "/v1/runs", json={"workflowId": "w", "workspaceId": workspace}
        )
        await byte_owner.put(f"{root}/{name}", content=b"later", headers=BYTES)
        assert started.status_code in (200, 201, 202), started.text
        url = f"/v1/runs/{started.json()['runId']}/files/{name}"
        got = await byte_owner.get(url, headers=WANT)
        assert (got.content, got.headers["repr-digest"]) == (content, repr_digest(content))
        assert "immutable" in got.headers["cache-control"]
        part = await byte_owner.get(url, headers={**WANT, "Range": "bytes=1-3"})
        assert (part.status_code, part.content) == (206, content[1:4])
        body = (await byte_owner.get(url)).json()
        is_text = "encoding" not in body
        decoded = body["content"].encode() if is_text else base64.b64decode(body["content"])
        assert (decoded, is_text) == (content, name == "a.txt")


async def test_a_body_of_unknown_length_is_received_in_parts(
    byte_owner: httpx.AsyncClient, root: str
) -> None:
    put = await byte_owner.put(f"{root}/a.bin", content=chunks(LARGE), headers=BYTES)
    assert put.json()["sha256"] == hashlib.sha256(LARGE).hexdigest()
    assert (await byte_owner.get(f"{root}/a.bin", headers=WANT)).content == LARGE


@pytest.mark.parametrize("size", [1_000, 400_000])
async def test_every_stack_has_bytes(byte_owner: httpx.AsyncClient, root: str, size: int) -> None:
    template = (await byte_owner.post("/v1/templates", json={"slug": "t", "name": "T"})).json()[
        "id"
    ]
    agent = {"slug": "a", "name": "A", "templateId": template}
    await byte_owner.post("/v1/agents", json=agent)
    roots = (FILES, "/v1/agents/a/files", "/v1/templates/t/files", "/v1/defaults/files", root)
    for number, files in enumerate(roots):
        content = LARGE[number : number + size]
        url = f"{files}/docs%2F{number}.bin"
        put = await byte_owner.put(url, content=content, headers=BYTES)
        assert put.status_code == 200, put.text
        assert (await byte_owner.get(url, headers=WANT)).content == content
        as_json = (await byte_owner.get(url)).json()
        assert base64.b64decode(as_json.pop("content")) == content
        assert as_json.pop("encoding") == "base64"
        assert put.json().items() <= as_json.items()


async def test_text_is_served_as_json_and_as_bytes(byte_owner: httpx.AsyncClient) -> None:
    text = {"Content-Type": "text/plain; charset=utf-8"}
    await byte_owner.put(f"{FILES}/a.txt", content="häl", headers=text)
    assert (await byte_owner.get(f"{FILES}/a.txt")).json()["content"] == "häl"
    assert (await byte_owner.get(f"{FILES}/a.txt", headers={"Accept": "text/plain"})).text == "häl"
    assert (await byte_owner.get(f"{FILES}/a.txt", headers=text)).text == "häl"


async def test_placeholders_are_rendered_in_bytes_too(byte_owner: httpx.AsyncClient) -> None:
    await byte_owner.post("/v1/agents", json={"slug": "finn", "name": "Finn"})
    url = "/v1/agents/finn/files/docs/a.md"
    await byte_owner.put(
        url, content="I am {{AGENT_NAME}}", headers={"Content-Type": "text/markdown"}
    )
    served = await byte_owner.get(url, headers=WANT)
    assert served.text == "I am Finn"
    assert served.headers["repr-digest"] == repr_digest(b"I am Finn")
    part = await byte_owner.get(url, headers={**WANT, "Range": "bytes=5-"})
    assert (part.text, part.headers["content-range"]) == ("Finn", "bytes 5-8/9")
    raw = await byte_owner.get(url, headers=WANT, params={"raw": "true"})
    assert raw.text == "I am {{AGENT_NAME}}"
    assert raw.headers["repr-digest"] == repr_digest(b"I am {{AGENT_NAME}}")


async def test_a_condition_that_fails_is_told_before_the_body_is_received(
    byte_owner: httpx.AsyncClient, root: str
) -> None:
    url, sent = f"{root}/a.bin", 0

    async def parts() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(4):
            sent += 1
            yield LARGE

    created = await byte_owner.put(url, content=b"first", headers=BYTES)
    assert created.status_code == 200
    for condition in ({"If-None-Match": "*"}, {"If-Match": '"v99"'}):
        refused = await byte_owner.put(url, content=parts(), headers={**BYTES, **condition})
        assert (refused.status_code, refused.json()["error"]) == (409, "workspace_conflict")
        assert refused.json()["details"] == {"currentVersion": created.json()["version"]}
        assert sent <= 1
    once = {**BYTES, "If-None-Match": "*", "Idempotency-Key": "once"}
    answers = [await byte_owner.put(f"{root}/b.bin", content=LARGE, headers=once) for _ in "12"]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_conditions_hold_for_bytes(byte_owner: httpx.AsyncClient, root: str) -> None:
    url = f"{root}/a.bin"
    for content in (b"\xff", LARGE):
        await byte_owner.delete(url)
        created = await byte_owner.put(
            url, content=content, headers={**BYTES, "If-None-Match": "*"}
        )
        assert created.status_code == 200
        exists = await byte_owner.put(url, content=content, headers={**BYTES, "If-None-Match": "*"})
        assert (exists.status_code, exists.json()["error"]) == (409, "workspace_conflict")
        stale = await byte_owner.put(url, content=content, headers={**BYTES, "If-Match": '"v99"'})
        version = created.json()["version"]
        assert stale.json()["details"] == {"currentVersion": version}
        tag = {**WANT, "If-None-Match": created.headers["etag"]}
        assert (await byte_owner.get(url, headers=tag)).status_code == 304
        match = {**BYTES, "If-Match": created.headers["etag"]}
        assert (await byte_owner.put(url, content=b"new", headers=match)).json()[
            "version"
        ] == version + 1


@pytest.mark.parametrize("name", ["Repr-Digest", "Content-Digest"])
@pytest.mark.parametrize("content", [LARGE[:1000], LARGE], ids=len)
async def test_a_digest_of_the_request_is_checked(
    tmp_path: File, byte_owner: httpx.AsyncClient, root: str, name: str, content: bytes
) -> None:
    url, before = f"{root}/a.bin", blob_files(tmp_path)
    for wrong in (repr_digest(content + b"x"), "sha-256=:AA==:", "sha-256=x", "sha-256=:é:", ""):
        headers = {**BYTES, name: wrong}
        encoded = [(key.encode(), value.encode()) for key, value in headers.items()]
        refused = await byte_owner.put(url, content=content, headers=encoded)
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")
        assert name in refused.json()["message"]
    assert (await byte_owner.get(url)).status_code == 404
    assert blob_files(tmp_path) == before

    for right in (repr_digest(content), f"md5=:AAAA:, {repr_digest(content)};x=1", "md5=:AAAA:"):
        put = await byte_owner.put(url, content=content, headers={**BYTES, name: right})
        assert put.status_code == 200, put.text


async def test_a_digest_of_json_is_that_of_the_body(byte_owner: httpx.AsyncClient) -> None:
    body = json.dumps({"content": "x"}).encode()
    for content, status in ((body, 200), (b"x", 400)):
        headers = {"Content-Type": "application/json", "Repr-Digest": repr_digest(content)}
        put = await byte_owner.put(f"{FILES}/a.md", content=body, headers=headers)
        assert put.status_code == status


@pytest.mark.parametrize("size", [1000, 400_000, 2 * PART_BYTES])
async def test_secrets_in_bytes_are_redacted(
    byte_owner: httpx.AsyncClient, root: str, size: int
) -> None:
    await byte_owner.put("/v1/secrets/fish", json={"value": SECRET})
    padding = LARGE[:size]
    content = padding + SECRET.encode() + padding
    headers = {**BYTES, "Repr-Digest": repr_digest(content), "Idempotency-Key": "k"}
    put = await byte_owner.put(f"{root}/a.bin", content=content, headers=headers)
    assert put.headers["carrel-redacted"] == "fish"
    stored = padding + b"[REDACTED:fish]" + padding
    assert put.json()["sha256"] == digest(stored).removeprefix("sha256:")
    assert (await byte_owner.get(f"{root}/a.bin", headers=WANT)).content == stored
    again = await byte_owner.put(f"{root}/a.bin", content=content, headers=headers)
    assert again.json() == put.json()
    assert again.headers["carrel-redacted"] == "fish"
    assert again.headers["openwop-idempotent-replay"] == "true"


async def test_a_warning_names_what_looks_like_a_secret(
    byte_owner: httpx.AsyncClient, root: str
) -> None:
    reason = {"Carrel-Reason": "a test"}
    changed = await byte_owner.put("/v1/policy", json={"redaction": "warn"}, headers=reason)
    assert changed.status_code == 200, changed.text
    key = b" AKIAQWERTYUIOPASDFGH "
    for padding in (b"", b"text\n" * 400_000):
        put = await byte_owner.put(f"{root}/a.txt", content=key + padding, headers=BYTES)
        assert put.status_code == 200, put.text
        assert put.headers["carrel-warning"].startswith("looks like a secret: ")


async def test_content_is_redacted_again_if_a_secret_is_added_during_the_upload(
    byte_server: FullApp, byte_owner: httpx.AsyncClient, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = LARGE + SECRET.encode()

    async def body() -> AsyncIterator[bytes]:
        yield content[:PART_BYTES]
        adding = asyncio.create_task(byte_owner.put("/v1/secrets/fish", json={"value": SECRET}))
        assert (await adding).status_code == 200
        yield content[PART_BYTES:]

    put = await byte_owner.put(f"{root}/a.bin", content=body(), headers=BYTES)
    assert put.headers["carrel-redacted"] == "fish"
    assert (
        await byte_owner.get(f"{root}/a.bin", headers=WANT)
    ).content == LARGE + b"[REDACTED:fish]"


@pytest.mark.parametrize("size", [1000, 2 * PART_BYTES])
async def test_an_idempotency_key_covers_bytes(
    byte_owner: httpx.AsyncClient, root: str, size: int
) -> None:
    content, url = LARGE[:size], f"{root}/a.bin"
    key = {**BYTES, "Idempotency-Key": "one"}
    first = await byte_owner.put(url, content=content, headers=key)
    await byte_owner.put(url, content=b"later", headers=BYTES)
    again = await byte_owner.put(url, content=content, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    assert (await byte_owner.get(url, headers=WANT)).content == b"later"
    other = await byte_owner.put(url, content=content + b"x", headers=key)
    assert (other.status_code, other.json()["error"]) == (409, "idempotency_key_mismatch")
    typed = await byte_owner.put(url, content=content, headers={**key, "Content-Type": "image/png"})
    assert typed.status_code == 409


async def test_a_file_above_the_limit_is_413_and_leaves_nothing(
    tmp_path: File, byte_owner: httpx.AsyncClient, root: str
) -> None:
    before, allowed = blob_files(tmp_path), LARGE[:PART_BYTES]
    received = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal received
        while True:
            received += 65_536
            yield bytes(65_536)

    for content in (allowed + b"x", body()):
        refused = await byte_owner.put(f"{FILES}/a.bin", content=content, headers=BYTES)
        assert (refused.status_code, refused.json()["error"]) == (413, "workspace_too_large")
    assert received < 3 * PART_BYTES
    assert blob_files(tmp_path) == before
    assert (
        await byte_owner.put(f"{FILES}/a.bin", content=allowed, headers=BYTES)
    ).status_code == 200


async def test_a_write_that_is_not_permitted_is_refused_before_its_content(
    byte_owner: httpx.AsyncClient, root: str
) -> None:
    async def never_read() -> AsyncIterator[bytes]:
        raise AssertionError("the content was read")
        yield b""

    key = (await byte_owner.post("/v1/keys", json={"name": "r", "kind": "service"})).json()["key"]
    bad = {
        f"{root}/..%2Fa": ({}, 400),
        f"{root.replace('ws_', 'ws_0')}/a": ({}, 404),
        f"{root}/a%FF": ({}, 400),
        f"{root}/b": ({"Content-Type": "no type"}, 400),
        f"{root}/c": ({"Content-Encoding": "gzip"}, 400),
        f"{root}/d": ({"Content-Range": "bytes 0-1/2"}, 400),
        f"{root}/e": ({"Authorization": f"Bearer {key}x"}, 401),
        f"{root}/f": ({"Content-Length": "99999999999999"}, 413),
        f"{root}/g": ({"Content-Length": str(2**200)}, 413),
    }
    for url, (headers, status) in bad.items():
        refused = await byte_owner.put(url, content=never_read(), headers={**BYTES, **headers})
        assert refused.status_code == status, refused.text


async def test_a_pinned_file_is_overridden_only_on_request(byte_owner: httpx.AsyncClient) -> None:
    await byte_owner.post("/v1/agents", json={"slug": "finn", "name": "Finn"})
    url, text = "/v1/agents/finn/files/GUARDRAILS.md", {"Content-Type": "text/markdown"}
    assert (await byte_owner.put(url, content="mine", headers=text)).status_code == 403
    accepted = {"acceptTemplateUpdate": "true"}
    put = await byte_owner.put(url, content="mine", headers=text, params=accepted)
    assert (put.status_code, put.json()["source"]) == (200, "agent-override-pinned")


async def test_the_stored_type_may_be_one_that_a_body_of_bytes_cannot_have(
    byte_owner: httpx.AsyncClient,
) -> None:
    query = {"contentType": "application/json"}
    put = await byte_owner.put(f"{FILES}/a.json", content=b"{}", headers=BYTES, params=query)
    assert put.json()["contentType"] == "application/json"
    assert (await byte_owner.get(f"{FILES}/a.json", headers=WANT)).content == b"{}"


async def test_options_of_json_are_in_its_body(byte_owner: httpx.AsyncClient, root: str) -> None:
    for query in ({"contentType": "image/png"}, {"acceptTemplateUpdate": "true"}):
        refused = await byte_owner.put(f"{root}/a.md", json={"content": "x"}, params=query)
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")


async def test_a_page_among_the_files_is_not_a_page_of_the_console(
    byte_owner: httpx.AsyncClient,
) -> None:
    html = {"Content-Type": "text/html"}
    await byte_owner.put(f"{FILES}/a.html", content=b"<script>alert(1)</script>", headers=html)
    got = await byte_owner.get(f"{FILES}/a.html", headers=WANT)
    assert got.headers["content-type"] == "text/html"
    assert got.headers["content-security-policy"].startswith("sandbox;")
    assert got.headers["content-disposition"] == "attachment"
    assert got.headers["x-content-type-options"] == "nosniff"


async def test_damaged_bytes_are_refused_before_their_response_begins(
    tmp_path: File, byte_owner: httpx.AsyncClient, root: str
) -> None:
    await byte_owner.put(f"{root}/large.bin", content=LARGE, headers=BYTES)
    assert (await byte_owner.get(f"{root}/large.bin", headers=WANT)).content == LARGE
    [stored] = [file for file in blob_files(tmp_path) if file.stat().st_size == len(LARGE)]
    stored.write_bytes(LARGE[:-1] + b"x")
    for headers in ({}, {"Range": "bytes=0-3"}):
        refused = await byte_owner.get(f"{root}/large.bin", headers={**WANT, **headers})
        assert (refused.status_code, refused.json()["error"]) == (500, "corrupt")
        assert "large.bin" in refused.text


async def test_bytes_are_received_and_sent_in_parts_of_limited_size(
    byte_server: FullApp, byte_owner: httpx.AsyncClient, root: str
) -> None:
    sizes: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        async def record(message: Any) -> None:
            sizes.append(len(message.get("body", b"")))
            await send(message)

        await byte_server.app(scope, receive, record)

    await byte_owner.put(f"{root}/a.bin", content=chunks(LARGE), headers=BYTES)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, headers=byte_owner.headers) as client:
        got = await client.get(f"http://carrel{root}/a.bin", headers=WANT)
    assert got.content == LARGE
    assert max(sizes) <= PART_BYTES
