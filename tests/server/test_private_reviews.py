"""Who may review the pinned files of a private agent, over every endpoint that does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Final

import pytest
from tests.server.private_agent import ADMINS, Office, Row, is_refused, open_office, send

pytestmark = pytest.mark.anyio

_SHA256: Final = "0" * 64
_OFFER: Final = {"sha256": _SHA256}
_MERGED: Final = {"sha256": _SHA256, "content": "x", "ifMatch": '"v1.a"'}
REVIEW_ROWS: Final = {
    "POST /v1/agents/{id}/pins/{path...}/accept": Row(_OFFER),
    "POST /v1/agents/{id}/pins/{path...}/rollback": Row({}),
    "POST /v1/agents/{id}/pins/{path...}/decline": Row({**_OFFER, "reason": "x"}),
    "GET /v1/agents/{id}/pins/{path...}/merge": Row(),
    "POST /v1/agents/{id}/pins/{path...}/merge": Row(_MERGED),
}
"""Endpoints that review a pinned file of one agent, and show or change what it is served."""


@pytest.fixture
async def office(tmp_path: File) -> AsyncIterator[Office]:
    async with open_office(tmp_path) as office:
        yield office


async def test_every_review_of_one_agent_has_a_row_and_is_for_admins(office: Office) -> None:
    reviews = {name for name in office.registry if "/agents/{id}/pins/{path...}" in name}
    assert reviews == set(REVIEW_ROWS)
    for name, row in REVIEW_ROWS.items():
        for caller in office.private.callers:
            guardrails = name.replace("{path...}", "GUARDRAILS.md")
            response = await send(office, caller, guardrails, row)
            refused = response.status_code in {401, 403} or "no such agent" in response.text
            assert refused is (caller not in ADMINS), (name, caller, response.text)
            assert response.status_code < 500


async def test_counts_of_versions_name_no_agent(office: Office) -> None:
    url = "/v1/defaults/pins/GUARDRAILS.md/versions"
    for caller in ("tenant admin", "other member"):
        response = await office.private.callers[caller].get(url)
        assert response.json()["total"] == 2
        assert office.private.agent not in response.text
    for caller in ("own key", "other agent's key", "anonymous"):
        assert is_refused(await office.private.callers[caller].get(url)), caller
