"""A browser's cookie is marked secure if a trusted proxy reports https."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.support.server_process import TOKEN, serving

pytestmark = pytest.mark.anyio
FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("trusted", "secure"), [("127.0.0.1", True), ("10.0.0.1", False), ("", False)]
)
async def test_only_a_trusted_proxy_determines_the_scheme(
    tmp_path: File, trusted: str, secure: bool
) -> None:
    with serving(tmp_path, trusted_proxies=trusted) as live:
        async with live.http("") as browser:
            body = {"token": TOKEN}
            response = await browser.post("/v1/session", json=body, headers=FORWARDED)
            plain = await browser.post("/v1/session", json=body)
    assert response.headers["set-cookie"].endswith("; Secure") is secure
    assert "Secure" not in plain.headers["set-cookie"]
