"""Responses that are not prompts."""

from __future__ import annotations

import httpx
import pytest

from carrel_client import Client, InvalidResponse


@pytest.mark.parametrize("body", [None, [], {}, {"blocks": [{}]}, {"blocks": None}])
def test_response_that_is_not_a_prompt_is_invalid(body: object) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=body))
    with Client("http://carrel", "t", transport=transport) as client:
        with pytest.raises(InvalidResponse):
            client.agent("ada").prompt()
        with pytest.raises(InvalidResponse):
            client.agent("ada").lint()
