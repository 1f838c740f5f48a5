"""The packaged default files over REST."""

from __future__ import annotations

import httpx
import pytest
from tests.support.rest_client import RestServer

from carrel import defaults

pytestmark = pytest.mark.anyio
URL = "/v1/defaults"


async def states(owner: httpx.AsyncClient) -> dict[str, tuple[str, bool]]:
    body = (await owner.get(URL)).json()
    assert (body["packaged"], body["seeded"]) == (defaults.VERSION, defaults.VERSION)
    return {row["path"]: (row["state"], row["offered"]) for row in body["files"]}


async def test_a_new_tenant_has_every_default_file(owner: httpx.AsyncClient) -> None:
    assert await states(owner) == dict.fromkeys(sorted(defaults.FILES), ("current", False))
    answer = await owner.post(f"{URL}/update", json={})
    assert (answer.status_code, answer.json()) == (200, (await owner.get(URL)).json())


async def test_edited_and_deleted_defaults_are_reported_and_can_be_restored(
    owner: httpx.AsyncClient,
) -> None:
    await owner.put(f"{URL}/files/SOUL.md", json={"content": "ours"})
    await owner.delete(f"{URL}/files/ROUTER.md")
    current = await states(owner)
    assert (current["SOUL.md"], current["ROUTER.md"]) == (("edited", False), ("deleted", True))
    again = await owner.post(f"{URL}/update", json={"take": ["ROUTER.md"]})
    assert again.status_code == 200
    assert (await states(owner))["ROUTER.md"] == ("current", False)
    assert (await owner.get(f"{URL}/files/SOUL.md")).json()["content"] == "ours"


async def test_only_an_offered_file_can_be_taken(owner: httpx.AsyncClient) -> None:
    for body, status in (
        ({"take": ["SOUL.md"]}, 404),
        ({"keep": ["nothing.md"]}, 404),
        ({"take": ["../SOUL.md"]}, 400),
        ({"take": "SOUL.md"}, 400),
        ({"more": []}, 400),
    ):
        assert (await owner.post(f"{URL}/update", json=body)).status_code == status, body


async def test_updating_is_for_owners_and_admins(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    machine = await server.key(owner)
    assert (await machine.post(f"{URL}/update", json={})).status_code == 403
    assert (await server.as_(None).get(URL)).status_code == 401
