"""Two apps in one process, over copies of one store that diverged, share no response."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path as File
from typing import Final

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.stores import DATABASE

pytestmark = pytest.mark.anyio
AGENT: Final = "/v1/agents/marco"
TEMPLATE: Final = "/v1/templates/sales"
CONTENTS: Final = ("first store", "second store")
OVERLAY_LIST: Final = {"action": "list", "agentId": "marco", "includeContent": True}

Read = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]
READS: Final[dict[str, Read]] = {
    "file": lambda client: client.get(f"{AGENT}/files/SOUL.md"),
    "listing": lambda client: client.get(f"{AGENT}/files?content=true"),
    "raw listing": lambda client: client.get(f"{AGENT}/files?content=true&raw=true"),
    "overlay API listing": lambda client: client.post("/api/workspaces/files", json=OVERLAY_LIST),
    "prompt": lambda client: client.get(f"{AGENT}/prompt"),
}


@pytest.fixture
async def clients(tmp_path: File) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Owners of one tenant in two stores, of which the second was copied from the first."""
    first, second = tmp_path / "first", tmp_path / "second"
    async with open_full_app(first) as app:
        owner = await app.owner()
        await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
        agent = {"slug": "marco", "name": "Marco", "templateId": "sales"}
        assert (await owner.post("/v1/agents", json=agent)).status_code == 201
    second.mkdir()
    shutil.copy(first / DATABASE, second / DATABASE)
    async with AsyncExitStack() as stack:
        apps: list[FullApp] = [
            await stack.enter_async_context(open_full_app(directory))
            for directory in (first, second)
        ]
        token = owner.headers["Authorization"].partition(" ")[2]
        yield apps[0].as_(token), apps[1].as_(token)


@pytest.mark.parametrize("place", [TEMPLATE, AGENT])
@pytest.mark.parametrize("read", READS)
async def test_each_app_serves_the_content_of_its_own_store(
    clients: tuple[httpx.AsyncClient, httpx.AsyncClient], read: str, place: str
) -> None:
    for client, content in zip(clients, CONTENTS, strict=True):
        written = await client.put(f"{place}/files/SOUL.md", json={"content": content})
        assert written.status_code == 200, written.text
    for _ in range(3):
        responses = [await READS[read](client) for client in clients]
        for index, response in enumerate(responses):
            assert response.status_code == 200, response.text
            assert CONTENTS[index] in response.text
            assert CONTENTS[1 - index] not in response.text
    if read != "prompt":  # The ETag of a prompt is computed from its text.
        etags = {response.headers["etag"] for response in responses}
        assert len(etags) == 1, "only the store distinguishes the two responses"
