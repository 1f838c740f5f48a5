"""Which representation of a file a request gets, and which part of it."""

from __future__ import annotations

import base64
import hashlib
import json
import random

import httpx
import pytest
from tests.support.full_app import FILES

from carrel.ports.blobs import PART_BYTES

pytestmark = pytest.mark.anyio
BYTES = {"Content-Type": "application/octet-stream"}
WANT = {"Accept": "application/octet-stream"}
LARGE = random.Random(7).randbytes(3 * PART_BYTES + 12_345)


def repr_digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


@pytest.mark.parametrize("content", [LARGE[:1000], LARGE], ids=len)
@pytest.mark.parametrize("spec", ["0-0", "5-99", "500-", "-7", "990-99999999999", "0-"])
async def test_a_range_is_that_part(
    byte_owner: httpx.AsyncClient, root: str, content: bytes, spec: str
) -> None:
    await byte_owner.put(f"{root}/a.bin", content=content, headers=BYTES)
    first, _, last = spec.partition("-")
    start = int(first) if first else len(content) - int(last)
    end = min(int(last) + 1, len(content)) if first and last else len(content)
    for headers in ({}, {"If-Range": '"v1"'}):
        got = await byte_owner.get(
            f"{root}/a.bin", headers={**WANT, **headers, "Range": f"bytes={spec}"}
        )
        assert (got.status_code, got.content) == (206, content[start:end])
        assert got.headers["content-range"] == f"bytes {start}-{end - 1}/{len(content)}"
        assert got.headers["content-length"] == str(end - start)
        assert got.headers["repr-digest"] == repr_digest(content)


async def test_head_has_no_ranges(byte_owner: httpx.AsyncClient, root: str) -> None:
    await byte_owner.put(f"{root}/a.bin", content=b"0123456789", headers=BYTES)
    for spec in ("1-2", "20-30"):
        head = await byte_owner.head(f"{root}/a.bin", headers={**WANT, "Range": f"bytes={spec}"})
        assert (head.status_code, head.headers["content-length"]) == (200, "10")
        assert "content-range" not in head.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Range": "bytes=0-1,4-5"},
        {"Range": "bytes=5-2"},
        {"Range": "bytes=-"},
        {"Range": "lines=1-2"},
        {"Range": "bytes=x"},
        {"Range": "bytes=0-1", "If-Range": '"v9"'},
        {"Range": "bytes=0-1", "If-Range": "Wed, 18 Nov 2026 20:00:00 GMT"},
    ],
    ids=str,
)
async def test_other_ranges_are_answered_by_the_whole(
    byte_owner: httpx.AsyncClient, root: str, headers: dict[str, str]
) -> None:
    await byte_owner.put(f"{root}/a.bin", content=b"0123456789", headers=BYTES)
    got = await byte_owner.get(f"{root}/a.bin", headers={**WANT, **headers})
    assert (got.status_code, got.content) == (200, b"0123456789")
    assert "content-range" not in got.headers


@pytest.mark.parametrize(("content", "spec"), [(b"abc", "3-"), (b"abc", "-0"), (b"", "0-")])
async def test_a_range_beyond_the_end_is_416(
    byte_owner: httpx.AsyncClient, root: str, content: bytes, spec: str
) -> None:
    await byte_owner.put(f"{root}/a.bin", content=content, headers=BYTES)
    refused = await byte_owner.get(f"{root}/a.bin", headers={**WANT, "Range": f"bytes={spec}"})
    assert (refused.status_code, refused.json()["error"]) == (416, "range_not_satisfiable")
    assert refused.headers["content-range"] == f"bytes */{len(content)}"


@pytest.mark.parametrize(
    ("accept", "is_json"),
    [
        ("*/*", True),
        ("application/json", True),
        ("application/*", True),
        ("text/html, */*;q=0.8", True),
        ("application/octet-stream, application/json", True),
        ("application/octet-stream, */*;q=0.5", False),
        ("application/octet-stream, application/json;q=0.9", False),
        ("image/png", False),
        ("image/*, application/json;q=0", False),
        (";;,q=x", False),
    ],
)
async def test_accept_decides_between_json_and_bytes(
    byte_owner: httpx.AsyncClient, accept: str, is_json: bool
) -> None:
    await byte_owner.put(f"{FILES}/a.txt", content="x", headers={"Content-Type": "text/plain"})
    got = await byte_owner.get(f"{FILES}/a.txt", headers={"Accept": accept})
    assert got.headers["content-type"] == ("application/json" if is_json else "text/plain")
    assert got.headers["vary"] == "accept"


async def test_content_that_is_not_text_is_base64_both_ways(byte_owner: httpx.AsyncClient) -> None:
    body = {"content": "/wA=", "encoding": "base64"}
    put = await byte_owner.put(f"{FILES}/a.bin", json={**body, "contentType": "image/x-a"})
    got = await byte_owner.get(f"{FILES}/a.bin")
    listed = await byte_owner.get("/v1/workspaces/default/files", params={"content": "true"})

    assert put.json() == got.json()
    assert body.items() <= got.json().items()
    assert got.json()["contentType"] == "image/x-a"
    assert body.items() <= listed.json()["files"][0].items()


async def test_base64_of_text_is_stored_as_text(byte_owner: httpx.AsyncClient) -> None:
    body = {"content": "aGVsbG8=", "encoding": "base64"}
    assert (await byte_owner.put(f"{FILES}/a.md", json=body)).json()["content"] == "hello"
    assert "encoding" not in (await byte_owner.get(f"{FILES}/a.md")).json()


@pytest.mark.parametrize("content", ["/wA", "\ud83d", "é", "a b="])
async def test_content_that_is_no_base64_is_400(
    byte_owner: httpx.AsyncClient, content: str
) -> None:
    body = json.dumps({"content": content, "encoding": "base64"}).encode()
    refused = await byte_owner.put(f"{FILES}/a.bin", content=body)
    assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")
