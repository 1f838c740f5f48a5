"""The conformance seam: off by default, never open to strangers, never near a real tenant."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.server_process import FILES
from tests.support.stores import open_ports

from carrel.server.http.app import create_app
from carrel.server.http.metrics import Metrics
from carrel.settings import load
from carrel.wiring.server_app import authenticator, endpoints

pytestmark = pytest.mark.anyio
SEAM = "/v1/host/sample/workspace/op"


async def test_it_is_not_there_unless_asked_for(tmp_path: Any) -> None:
    async with open_full_app(tmp_path) as here:
        owner = await here.owner()
        body = {"tenant": "t", "workspace": "w", "op": "list"}
        assert (await owner.post(SEAM, json=body)).status_code == 404


async def test_it_does_what_the_endpoints_do_in_owners_of_its_own(tmp_path: Any) -> None:
    settings = load({"test_seam": True}, environ={})
    async with open_ports(tmp_path) as ports:
        app = create_app(
            ports, endpoints(settings), authenticator(ports, settings), metrics=Metrics()
        )
        here = FullApp(ports, app)
        ada = await here.owner()

        async def op(client: httpx.AsyncClient, **asked: Any) -> httpx.Response:
            return await client.post(SEAM, json={"tenant": "a", "workspace": "w", **asked})

        made = await op(ada, op="put", path="x.md", content="one")
        assert (made.status_code, made.json()["version"]) == (200, 1)
        assert (await op(ada, op="get", path="x.md")).json() == made.json()
        assert (await op(ada, op="get", path="x.md", tenant="b")).status_code == 404
        assert (await op(ada, op="get", path="x.md", workspace="v")).status_code == 404
        assert (await op(ada, op="list", tenant="b")).json() == {"files": []}
        stale = await op(ada, op="put", path="x.md", content="two", ifMatch='"v9"')
        assert (stale.status_code, stale.json()["details"]) == (409, {"currentVersion": 1})
        assert len((await op(ada, op="list")).json()["files"]) == 1
        assert (await op(ada, op="get", path="x.md", version=1)).status_code == 200
        assert (await op(ada, op="delete", path="x.md")).status_code == 204
        assert (await op(ada, op="burn")).status_code == 400
        assert (await op(ada, op="get")).status_code == 400
        assert (await op(here.as_(None), op="list")).status_code == 401

        slug = (await ada.get("/v1/tenants/me")).json()
        await ada.put(f"{FILES}/real.md", json={"content": "real"})
        for name in (slug["id"], slug["slug"]):
            found = await op(ada, op="get", path="real.md", tenant=name, workspace="default")
            assert found.status_code == 404
        other = await here.owner("globex")
        assert (await op(other, op="list")).json() == {"files": []}
