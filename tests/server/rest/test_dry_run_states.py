"""The state of a dry run opens nothing to a caller whose rights ended since."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

import pytest
from tests.server.private_agent import SECRET, create_private_agent
from tests.support.full_app import open_full_app

pytestmark = pytest.mark.anyio


async def test_a_former_admin_opens_no_private_agent_with_an_earlier_state(tmp_path: File) -> None:
    async with open_full_app(tmp_path) as app:
        private = await create_private_agent(app)
        owner, admin = private.callers["tenant owner"], private.callers["tenant admin"]
        url = f"/v1/agents/{private.agent}"
        share = {"method": "PATCH", "path": url, "body": {"isShared": True}}
        listing = {"method": "GET", "path": f"{url}/files", "query": {"content": "true"}}
        first = await admin.post("/v1/dry-run", json={"requests": [share]})
        body: Any = {"requests": [listing], "state": first.json()["state"]}
        assert SECRET in (await admin.post("/v1/dry-run", json=body)).text
        people = (await owner.get("/v1/people")).json()["items"]
        [person] = [item["id"] for item in people if item["name"] == "adam"]
        demoted = await owner.patch(f"/v1/people/{person}", json={"role": "member"})
        assert demoted.status_code == 200
        refused = await admin.post("/v1/dry-run", json=body)
        assert refused.status_code == 400, refused.text
