"""Wrong codes and tokens over every way in: 401, and 429 above the limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, serving

WRONG = "carrel_" + "x" * 43


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    directory: File = tmp_path_factory.mktemp("attempts")
    with serving(directory, attempts_per_minute="1", trusted_proxies="127.0.0.1") as server:
        yield server


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", "/v1/sign-in", {"json": {"code": "code_" + "x" * 43}}),
        ("POST", "/v1/sign-in", {"json": {"code": "123456"}}),
        ("POST", "/v1/session", {"json": {"code": "123456"}}),
        ("POST", "/v1/session", {"json": {"token": "a weak one"}}),
        ("GET", "/v1/agents", {"headers": bearer(WRONG)}),
        ("GET", "/v1/agents", {"headers": {"x-api-key": WRONG, "x-tenant-id": "default"}}),
        ("GET", "/v1/agents", {"headers": {"Cookie": f"carrel_session={WRONG}"}}),
        ("POST", "/v1/graphql", {"headers": bearer("guess"), "json": {"query": "{ agents }"}}),
        ("POST", "/mcp/agents/ada", {"headers": bearer("guess"), "json": {}}),
    ],
)
def test_wrong_credentials_are_401_and_then_429_for_their_address_alone(
    live: ServerProcess,
    request: pytest.FixtureRequest,
    method: str,
    path: str,
    options: dict[str, Any],
) -> None:
    address = f"192.0.2.{request.node.callspec.indices['path'] + 1}"
    with httpx.Client(base_url=live.url, verify=PLAIN, timeout=60) as client:
        client.headers["X-Forwarded-For"] = address
        answers = [client.request(method, path, **options) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [401, 429, 429]
        problem = answers[-1].json()
        assert problem["error"] == "too_many_attempts"
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
        client.headers["X-Forwarded-For"] = "198.51.100.7"
        assert client.get("/v1/agents", headers=bearer(TOKEN)).status_code == 200


def test_discovery_counts_wrong_tokens_and_reveals_nothing(live: ServerProcess) -> None:
    path = "/.well-known/openwop"
    with httpx.Client(base_url=live.url, verify=PLAIN, timeout=60) as client:
        client.headers["X-Forwarded-For"] = "203.0.113.3"
        answers = [client.get(path, headers=bearer(guess)) for guess in ("guess", "another")]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert answers[0].content == answers[1].content == client.get(path).content
        assert client.get("/v1/agents", headers=bearer("a third")).status_code == 429


def test_requests_without_a_credential_are_not_attempts(live: ServerProcess) -> None:
    with httpx.Client(base_url=live.url, verify=PLAIN, timeout=60) as client:
        client.headers["X-Forwarded-For"] = "203.0.113.1"
        assert {client.get("/v1/agents").status_code for _ in range(5)} == {401}
        assert client.get("/v1/agents", headers=bearer(WRONG)).status_code == 401


def test_a_key_is_valid_while_its_address_is_limited(live: ServerProcess) -> None:
    with httpx.Client(base_url=live.url, verify=PLAIN, timeout=60) as client:
        body = {"name": "robot", "kind": "service"}
        key = client.post("/v1/keys", json=body, headers=bearer(TOKEN)).json()["key"]
        client.headers["X-Forwarded-For"] = "203.0.113.2"
        statuses = [client.get("/v1/agents", headers=bearer(WRONG)).status_code for _ in range(2)]
        assert statuses == [401, 429]
        assert client.get("/v1/session", headers=bearer(key)).status_code == 200
        assert client.get("/v1/session", headers=bearer(TOKEN)).status_code == 429
