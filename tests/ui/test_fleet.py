"""The fleet store: what the browser tests of large tenants rely on."""

from __future__ import annotations

import httpx
from tests.support import fleet_store
from tests.support.server_process import TOKEN, ServerProcess


def count_all(http: httpx.Client, path: str) -> int:
    count, cursor = 0, ""
    while True:
        page = http.get(path, params={"limit": 500, "cursor": cursor}).raise_for_status().json()
        count += len(page["items"])
        cursor = page["next"]
        if not cursor:
            return count


def test_the_fleet_store_has_as_many_agents_reviews_and_runs_as_it_says(
    fleet_server: ServerProcess,
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=fleet_server.url, headers=headers) as http:
        assert count_all(http, "/v1/agents") == fleet_store.AGENT_COUNT
        assert count_all(http, "/v1/templates") == fleet_store.TEMPLATE_COUNT
        assert count_all(http, "/v1/people") == fleet_store.PERSON_COUNT
        assert count_all(http, "/v1/runs") == fleet_store.RUN_COUNT
        assert http.get("/v1/inbox").json()["counts"]["pins"] == fleet_store.REVIEW_COUNT
        busy = f"/v1/agents/{fleet_store.BUSY_AGENT}"
        for list_name in ("sessions", "memories", "items"):
            assert count_all(http, f"{busy}/{list_name}") == fleet_store.BUSY_COUNT
