"""The Docker Engine's API, as far as sandboxes need it."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.fakes.computer import Computer, output_of

IMAGES = {"python:3.13-slim", "debian:13-slim"}


@dataclass
class Container:
    name: str
    body: dict[str, Any]
    computer: Computer | None = None


@dataclass
class Exec:
    container: Container
    words: list[str]
    code: int | None = None


@dataclass
class Engine:
    """All containers and their exec instances."""

    root: File
    containers: dict[str, Container] = field(default_factory=dict)
    execs: dict[str, Exec] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)

    @property
    def running_instances(self) -> list[str]:
        return list(self.containers)

    def app(self) -> Starlette:
        at = "/v{version}"
        return Starlette(
            routes=[
                Route("/version", self.version),
                Route(f"{at}/containers/create", self.create, methods=["POST"]),
                Route(f"{at}/containers/{{id}}/start", self.start, methods=["POST"]),
                Route(f"{at}/containers/{{id}}/archive", self.unpack, methods=["PUT"]),
                Route(f"{at}/containers/{{id}}/exec", self.prepare, methods=["POST"]),
                Route(f"{at}/containers/{{id}}", self.remove, methods=["DELETE"]),
                Route(f"{at}/exec/{{id}}/start", self.execute, methods=["POST"]),
                Route(f"{at}/exec/{{id}}/json", self.inspect),
            ]
        )

    def _named(self, request: Request) -> Container | None:
        return self.containers.get(request.path_params["id"])

    async def version(self, _: Request) -> Response:
        return JSONResponse({"ApiVersion": "1.47", "MinAPIVersion": "1.24", "Version": "27.3"})

    async def create(self, request: Request) -> Response:
        body, name = await request.json(), request.query_params["name"]
        if body["Image"] not in IMAGES:
            return _problem(404, f"No such image: {body['Image']}")
        if name in self.containers:
            return _problem(409, "Conflict. The container name is already in use")
        self.created.append(body)
        self.containers[name] = Container(name, body)
        return JSONResponse({"Id": name, "Warnings": []}, 201)

    async def start(self, request: Request) -> Response:
        container = self._named(request)
        if container is None:
            return _problem(404, "No such container")
        mount = container.body["HostConfig"]["Mounts"][0]
        container.computer = Computer(self.root / container.name, mount["Target"])
        return Response(status_code=204)

    async def unpack(self, request: Request) -> Response:
        container, path = self._named(request), request.query_params["path"]
        if container is None or container.computer is None:
            return _problem(404, "No such container")
        config = container.body["HostConfig"]
        volumes = {mount["Target"] for mount in config["Mounts"] if mount["Type"] == "volume"}
        if config["ReadonlyRootfs"] and path not in volumes:
            return _problem(400, "container rootfs is marked read-only")
        container.computer.unpack(await request.body())
        return Response(status_code=200)

    async def prepare(self, request: Request) -> Response:
        container = self._named(request)
        if container is None or container.computer is None:
            return _problem(409, "container is not running")
        body = await request.json()
        id = f"e{len(self.execs)}"
        self.execs[id] = Exec(container, body["Cmd"])
        return JSONResponse({"Id": id}, 201)

    async def execute(self, request: Request) -> Response:
        kind = "application/vnd.docker.multiplexed-stream"
        return StreamingResponse(self._stream_output(request.path_params["id"]), media_type=kind)

    async def _stream_output(self, id: str) -> AsyncIterator[bytes]:
        execution = self.execs[id]
        assert execution.container.computer is not None
        process = await execution.container.computer.start(execution.words)
        async for stream, part in output_of(process):
            yield struct.pack(">BxxxL", stream, len(part)) + part
        code = process.returncode or 0
        execution.code = 128 - code if code < 0 else code

    async def inspect(self, request: Request) -> Response:
        execution = self.execs[request.path_params["id"]]
        return JSONResponse({"Running": execution.code is None, "ExitCode": execution.code})

    async def remove(self, request: Request) -> Response:
        container = self.containers.pop(request.path_params["id"], None)
        if container is None:
            return _problem(404, "No such container")
        assert request.query_params["force"] == "True" and request.query_params["v"] == "True"
        if container.computer is not None:
            container.computer.destroy()
        return Response(status_code=204)


def _problem(status: int, text: str) -> Response:
    return Response(json.dumps({"message": text}), status, media_type="application/json")
