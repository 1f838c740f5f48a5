"""Dry runs: responses to requests that are not made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from carrel_client.drivers import Steps
from carrel_client.errors import InvalidResponse
from carrel_client.requests import api_path, send_json


@dataclass(frozen=True, slots=True)
class DryResponse:
    """The response that a request would have."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class DryRun:
    responses: tuple[DryResponse, ...]
    state: str
    """Continues after these requests, if passed to the next dry run."""


def dry_run(requests: Sequence[Mapping[str, Any]], state: str) -> Steps[DryRun]:
    """Send requests to be answered as if they were made. Raises CarrelError."""
    body: dict[str, Any] = {"requests": list(requests), "state": state}
    answer = yield from send_json("POST", api_path("dry-run"), body)
    try:
        responses = tuple(
            DryResponse(int(row["status"]), dict(row["headers"]), row["body"])
            for row in answer["responses"]
        )
        result = DryRun(responses, str(answer["state"]))
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse("the response is not that of a dry run") from None
    if len(responses) != len(body["requests"]):
        raise InvalidResponse("the dry run did not answer every request")
    return result
