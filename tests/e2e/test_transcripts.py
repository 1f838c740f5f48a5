"""Transcripts of a server that is killed, and of many writers: nothing lost, twice or torn."""

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
from tests.support.server_process import PLAIN, TOKEN, Live, carrel, serving

DEATHS = 5
WRITERS = 8
ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"
ROOT = "/v1/agents/kate/sessions"
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def connections_to_the_dead() -> Iterator[None]:
    """Those to a server that has gone are never closed properly: let them go here, not later."""
    yield
    gc.collect()


def begin(live: Live) -> None:
    head = {"Authorization": f"Bearer {TOKEN}"}
    body = {"slug": "kate", "name": "Kate", "config": {"transcriptsDir": "chats/kate"}}
    made = httpx.post(f"{live.url}/v1/agents", json=body, headers=head, verify=PLAIN)
    assert made.status_code in {201, 409}, made.text


def lines(content: bytes) -> list[dict[str, Any]]:
    """Every line as JSON, the header first and once."""
    assert content.endswith(b"\n")
    told: list[dict[str, Any]] = [json.loads(line) for line in content.split(b"\n")[:-1]]
    assert [line["type"] for line in told] == ["session", *["entry"] * (len(told) - 1)]
    return told


def mirrored(live: Live, root: File, expected: bytes) -> bytes:
    """The file, as soon as it is what it should be."""
    file, deadline = root / "chats" / "kate" / f"{ID}.jsonl", time.monotonic() + 30
    while True:
        content = file.read_bytes() if file.exists() else b""
        if content == expected or time.monotonic() > deadline:
            return content
        httpx.get(f"{live.url}/healthz", verify=PLAIN).raise_for_status()


async def exported(live: Live) -> bytes:
    async with live.http() as client:
        return (await client.get(f"{ROOT}/{ID}.jsonl")).raise_for_status().content


async def speak(client: httpx.AsyncClient, told: list[tuple[int, str]], sent: set[str]) -> None:
    while True:
        text = f"said-{len(sent)}"
        sent.add(text)
        answer = await say(client, text)
        told.append((answer.raise_for_status().json()["number"], text))


async def say(client: httpx.AsyncClient, text: str) -> httpx.Response:
    key, body = {"Idempotency-Key": text}, {"role": "user", "content": text}
    return await client.post(f"{ROOT}/{ID}/entries", json=body, headers=key)


async def insist(live: Live, texts: set[str]) -> None:
    """Send again what was never answered; who died over it may still have it in hand."""
    async with live.http() as client:
        answers = [await say(client, text) for text in sorted(texts)]
    assert {answer.status_code for answer in answers} <= {201, 409}


async def until_killed(
    live: Live, told: list[tuple[int, str]], sent: set[str], enough: int
) -> None:
    async with live.http() as client:
        await client.post(ROOT, json={"id": ID})
        works = [asyncio.create_task(speak(client, told, sent)) for _ in range(WRITERS)]
        while len(told) < enough:
            done, _ = await asyncio.wait(works, timeout=0.002)
            assert not done, [task.exception() for task in done]
        live.kill()
        for work in works:
            work.cancel()
            with suppress(httpx.TransportError, asyncio.CancelledError):
                await work


@pytest.mark.usefixtures("connections_to_the_dead")
def test_nothing_that_was_said_is_lost_or_said_twice_when_the_server_is_killed(
    tmp_path: File,
) -> None:
    told: list[tuple[int, str]] = []
    sent: set[str] = set()
    chance = random.Random(5)
    for _ in range(DEATHS):
        with serving(tmp_path) as live:
            begin(live)
            enough = len(told) + chance.randint(20, 120)
            asyncio.run(until_killed(live, told, sent, enough))
    file = tmp_path / "transcripts" / "chats" / "kate" / f"{ID}.jsonl"
    if file.exists():  # as a machine may leave it that dies while it writes
        file.write_bytes(file.read_bytes()[:-3])

    with serving(tmp_path) as live:
        asyncio.run(insist(live, sent - {text for _, text in told}))
        whole = asyncio.run(exported(live))
        assert mirrored(live, tmp_path / "transcripts", whole) == whole
    entries = [line["content"] for line in lines(whole)[1:]]
    assert len(told) == len(dict(told)), "a number was given twice"
    assert [entries[number - 1] for number, _ in told] == [text for _, text in told]
    assert set(entries) <= sent
    assert max(Counter(entries).values()) == 1
    report = carrel(tmp_path, "doctor")
    assert report.returncode == 0, report.stdout + report.stderr


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    if request.param == "sqlite":
        return {}
    return {"database_url": str(request.getfixturevalue("postgres_url"))}


async def sixteen(live: Live) -> None:
    async with live.http() as client:

        async def write(n: int) -> None:
            started = await client.post(ROOT, json={"id": ID, "sourcePlugin": f"p{n}"})
            assert started.status_code in {200, 201}, started.text
            for turn in range(5):
                body = {"role": "user", "content": f"{n}: {turn}"}
                (await client.post(f"{ROOT}/{ID}/entries", json=body)).raise_for_status()

        await asyncio.gather(*[write(n) for n in range(16)])


@pytest.mark.parametrize("workers", [1, 2])
def test_16_writers_on_one_new_session(
    tmp_path: File, settings: dict[str, str], workers: int
) -> None:
    root = tmp_path / "elsewhere"
    with serving(tmp_path, workers=workers, transcripts_root=str(root), **settings) as live:
        begin(live)
        asyncio.run(sixteen(live))
        whole = asyncio.run(exported(live))
        assert mirrored(live, root, whole) == whole

    told = lines(whole)
    assert {line["content"] for line in told[1:]} == {
        f"{n}: {t}" for n in range(16) for t in range(5)
    }
    assert len(told) == 81
