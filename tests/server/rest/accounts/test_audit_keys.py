"""Every entry of the audit names the key through which its author acted."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.server.private_agent import create_private_agent
from tests.support.full_app import open_full_app

pytestmark = pytest.mark.anyio
SERVER_AUTHORS = {"carrel", "platform"}


async def test_the_audit_names_the_key_of_every_caller(tmp_path: File) -> None:
    async with open_full_app(tmp_path) as app:
        private = await create_private_agent(app)
        owner, admin = private.callers["tenant owner"], private.callers["tenant admin"]
        root = f"/v1/agents/{private.agent}"
        answers = [
            await owner.post(f"/v1/approvals/{private.approval}", json={"approved": False}),
            await admin.get(f"{root}/memories"),
            await admin.delete(root),
        ]
        assert [answer.is_success for answer in answers] == [True] * 3
        entries = (await owner.get("/v1/audit?limit=500")).json()["items"]
        keys = {key["id"]: key["name"] for key in (await owner.get("/v1/keys")).json()["items"]}
    reasons = {entry["why"] for entry in entries if f"approval/{private.approval}" in str(entry)}
    assert reasons >= {"deny a call of bash", "delete an agent's records"}
    for entry in entries:
        assert entry["by"] in SERVER_AUTHORS or keys[entry["key"]["id"]] == entry["key"]["name"]
