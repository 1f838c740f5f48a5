"""The server with additional endpoints that return constant bytes."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec

from carrel.server.http.endpoint import Request, RequestModel, endpoint
from carrel.server.http.response import JSON_TYPE, Response
from carrel.settings import load, metrics_directory
from carrel.wiring.server_app import ServerApp

BYTES = b"x" * 2**20


class ConstantQuery(RequestModel, frozen=True):
    size: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 4096


@endpoint("GET", "/bench/constant", public=True, query=ConstantQuery, responses={200: "text/plain"})
async def constant(call: Request[None, ConstantQuery]) -> Response:
    """Return constant bytes: the upper bound of what the server can deliver."""
    return Response(200, BYTES[: call.query.size], [JSON_TYPE])


@endpoint("GET", "/bench/process", public=True, responses={200: "text/plain"})
async def process(call: Request[None, None]) -> Response:
    """Return the id of the worker process."""
    return Response(200, b"%d" % os.getpid(), [JSON_TYPE])


def create_app() -> ServerApp:
    if cpus := os.environ.get("BENCH_CPUS"):
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    return ServerApp(load(), metrics_directory(), [constant, process])
