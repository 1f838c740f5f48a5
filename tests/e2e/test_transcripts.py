"""Transcripts of killed servers and of many writers: nothing lost, repeated or torn."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, carrel, serving

KILLS = 5
WRITERS = 8
ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"
ROOT = "/v1/agents/kate/sessions"
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def closed_connections() -> Iterator[None]:
    """Connections to a killed server are not closed properly; collect them here."""
    yield
    gc.collect()


def begin(live: ServerProcess) -> None:
    head = {"Authorization": f"Bearer {TOKEN}"}
    body = {"slug": "kate", "name": "Kate", "config": {"transcriptsDir": "chats/kate"}}
    response = httpx.post(f"{live.url}/v1/agents", json=body, headers=head, verify=PLAIN)
    assert response.status_code in {201, 409}, response.text


def lines(content: bytes) -> list[dict[str, Any]]:
    """Every line as JSON; the header comes first and only once."""
    assert content.endswith(b"\n")
    entries: list[dict[str, Any]] = [json.loads(line) for line in content.split(b"\n")[:-1]]
    assert [line["type"] for line in entries] == ["session", *["entry"] * (len(entries) - 1)]
    return entries


def wait_for_transcript(live: ServerProcess, root: File, expected: bytes) -> bytes:
    """The file, once it has the expected content."""
    file, deadline = root / "chats" / "kate" / f"{ID}.jsonl", time.monotonic() + 30
    while True:
        content = file.read_bytes() if file.exists() else b""
        if content == expected or time.monotonic() > deadline:
            return content
        httpx.get(f"{live.url}/healthz", verify=PLAIN).raise_for_status()


async def export_transcript(live: ServerProcess) -> bytes:
    async with live.http() as client:
        return (await client.get(f"{ROOT}/{ID}.jsonl")).raise_for_status().content


async def append_entries(
    client: httpx.AsyncClient, acknowledged: list[tuple[int, str]], sent: set[str]
) -> None:
    while True:
        text = f"said-{len(sent)}"
        sent.add(text)
        answer = await append_entry(client, text)
        acknowledged.append((answer.raise_for_status().json()["number"], text))


async def append_entry(client: httpx.AsyncClient, text: str) -> httpx.Response:
    key, body = {"Idempotency-Key": text}, {"role": "user", "content": text}
    return await client.post(f"{ROOT}/{ID}/entries", json=body, headers=key)


async def append_missing(live: ServerProcess, texts: set[str]) -> None:
    """Send entries without a response again; the killed server may have stored them."""
    async with live.http() as client:
        answers = [await append_entry(client, text) for text in sorted(texts)]
    assert {answer.status_code for answer in answers} <= {201, 409}


async def load_and_kill(
    live: ServerProcess, acknowledged: list[tuple[int, str]], sent: set[str], target: int
) -> None:
    async with live.http() as client:
        await client.post(ROOT, json={"id": ID})
        works = [
            asyncio.create_task(append_entries(client, acknowledged, sent)) for _ in range(WRITERS)
        ]
        while len(acknowledged) < target:
            done, _ = await asyncio.wait(works, timeout=0.002)
            assert not done, [task.exception() for task in done]
        live.kill()
        for work in works:
            work.cancel()
            with suppress(httpx.TransportError, asyncio.CancelledError):
                await work


@pytest.mark.usefixtures("closed_connections")
def test_killed_server_neither_loses_nor_repeats_an_entry(
    tmp_path: File,
) -> None:
    acknowledged: list[tuple[int, str]] = []
    sent: set[str] = set()
    generator = random.Random(5)
    for _ in range(KILLS):
        with serving(tmp_path) as live:
            begin(live)
            count = len(acknowledged) + generator.randint(20, 120)
            asyncio.run(load_and_kill(live, acknowledged, sent, count))
    file = tmp_path / "transcripts" / "chats" / "kate" / f"{ID}.jsonl"
    if file.exists():  # as a machine may leave it that crashes during a write
        file.write_bytes(file.read_bytes()[:-3])

    with serving(tmp_path) as live:
        asyncio.run(append_missing(live, sent - {text for _, text in acknowledged}))
        transcript = asyncio.run(export_transcript(live))
        assert wait_for_transcript(live, tmp_path / "transcripts", transcript) == transcript
    entries = [line["content"] for line in lines(transcript)[1:]]
    assert len(acknowledged) == len(dict(acknowledged)), "a number was given twice"
    assert [entries[number - 1] for number, _ in acknowledged] == [text for _, text in acknowledged]
    assert set(entries) <= sent
    assert max(Counter(entries).values()) == 1
    report = carrel(tmp_path, "doctor")
    assert report.returncode == 0, report.stdout + report.stderr


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    return {"database_url": str(request.getfixturevalue("postgres_url"))}


async def write_with_16_clients(live: ServerProcess) -> None:
    async with live.http() as client:

        async def write(n: int) -> None:
            started = await client.post(ROOT, json={"id": ID, "sourcePlugin": f"p{n}"})
            assert started.status_code in {200, 201}, started.text
            for turn in range(5):
                body = {"role": "user", "content": f"{n}: {turn}"}
                (await client.post(f"{ROOT}/{ID}/entries", json=body)).raise_for_status()

        await asyncio.gather(*[write(n) for n in range(16)])


@pytest.mark.parametrize("workers", [1, 2])
def test_16_writers_of_one_new_session_lose_no_entry(
    tmp_path: File, settings: dict[str, str], workers: int
) -> None:
    root = tmp_path / "elsewhere"
    with serving(tmp_path, workers=workers, transcripts_root=str(root), **settings) as live:
        begin(live)
        asyncio.run(write_with_16_clients(live))
        transcript = asyncio.run(export_transcript(live))
        assert wait_for_transcript(live, root, transcript) == transcript

    entries = lines(transcript)
    assert {line["content"] for line in entries[1:]} == {
        f"{n}: {t}" for n in range(16) for t in range(5)
    }
    assert len(entries) == 81
