"""Who may write to a shared workspace in the name of a private agent's run."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any, Final

import pytest
from tests.server.private_agent import create_private_agent
from tests.support.full_app import open_full_app

pytestmark = pytest.mark.anyio
_COMMIT: Final[Any] = {"writes": [{"op": "put", "path": "notes/b.md", "content": "x"}]}
_REFUSED: Final = "other member"


async def test_only_callers_with_access_write_in_the_name_of_a_run(tmp_path: File) -> None:
    async with open_full_app(tmp_path) as app:
        private = await create_private_agent(app)
        owner, run = private.callers["tenant owner"], {"Carrel-Run": private.run}
        created = await owner.post("/accounts/me/workspaces", json={"name": "team"})
        root = f"/v1/workspaces/{created.json()['workspaceId']}"
        for caller in (_REFUSED, "agent's owner", "paired human", "service", "tenant admin"):
            client = private.callers[caller]
            put = await client.put(f"{root}/files/a.md", json={"content": caller}, headers=run)
            commit = await client.post(f"{root}/commits", json=_COMMIT, headers=run)
            for response in (put, commit):
                status = 404 if caller == _REFUSED else 200
                assert response.status_code == status, (caller, response.text)
