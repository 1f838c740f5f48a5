"""The conformance endpoint: off by default, authenticated, apart from tenants."""

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


async def test_the_endpoint_is_404_by_default(tmp_path: Any) -> None:
    async with open_full_app(tmp_path) as server:
        owner = await server.owner()
        body = {"tenant": "t", "workspace": "w", "op": "list"}
        assert (await owner.post(SEAM, json=body)).status_code == 404


async def test_the_endpoint_mirrors_the_file_api_in_separate_tenants(tmp_path: Any) -> None:
    settings = load({"test_seam": True}, environ={})
    async with open_ports(tmp_path) as ports:
        app = create_app(
            ports, endpoints(settings), authenticator(ports, settings), metrics=Metrics()
        )
        server = FullApp(ports, app)
        ada = await server.owner()

        async def op(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
            return await client.post(SEAM, json={"tenant": "a", "workspace": "w", **body})

        created = await op(ada, op="put", path="x.md", content="one")
        assert (created.status_code, created.json()["version"]) == (200, 1)
        assert (await op(ada, op="get", path="x.md")).json() == created.json()
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
        assert (await op(server.as_(None), op="list")).status_code == 401

        slug = (await ada.get("/v1/tenants/me")).json()
        await ada.put(f"{FILES}/real.md", json={"content": "real"})
        for name in (slug["id"], slug["slug"]):
            response = await op(ada, op="get", path="real.md", tenant=name, workspace="default")
            assert response.status_code == 404
        other = await server.owner("globex")
        assert (await op(other, op="list")).json() == {"files": []}
