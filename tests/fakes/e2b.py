"""E2B's API and the daemon of its machines, as the SDK speaks to them.

Programs are started over Connect: JSON messages, each with a byte of flags and its length.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from tests.fakes.computer import Computer, output_of

LAST = 2


@dataclass
class E2B:
    root: File
    computers: dict[str, Computer] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    memory_mb: int = 512

    @property
    def running_instances(self) -> list[str]:
        return list(self.computers)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v2/sandboxes", self.create, methods=["POST"]),
                Route("/sandboxes/{id}", self.read, methods=["GET"]),
                Route("/sandboxes/{id}", self.delete, methods=["DELETE"]),
                Route("/files", self.upload, methods=["POST"]),
                Route("/files", self.download, methods=["GET"]),
                Route("/process.Process/Start", self.start, methods=["POST"]),
                Route("/health", self.health),
            ]
        )

    async def create(self, request: Request) -> Response:
        if request.headers.get("x-api-key") != "key":
            return JSONResponse({"code": 401, "message": "unauthorized"}, 401)
        body = await request.json()
        if body["templateID"] not in {"base", "tools"}:
            return JSONResponse({"code": 404, "message": "template not found"}, 404)
        self.created.append(body)
        id = f"machine{len(self.created)}"
        self.computers[id] = Computer(self.root / id, "/tmp/carrel")
        return JSONResponse(self._describe(id), 201)

    def _describe(self, id: str) -> dict[str, Any]:
        return {
            "templateID": "base",
            "sandboxID": id,
            "clientID": "here",
            "envdVersion": "0.6.9",
            "envdAccessToken": "token",
        }

    async def read(self, request: Request) -> Response:
        sizes = {"cpuCount": 2, "memoryMB": self.memory_mb, "diskSizeMB": 1024}
        times = {"startedAt": "2026-01-01T00:00:00Z", "endAt": "2026-01-01T01:00:00Z"}
        description = self._describe(request.path_params["id"])
        return JSONResponse({**description, **sizes, **times, "state": "running"})

    async def delete(self, request: Request) -> Response:
        computer = self.computers.pop(request.path_params["id"], None)
        if computer is None:
            return JSONResponse({"code": 404, "message": "not found"}, 404)
        computer.destroy()
        return Response(status_code=204)

    async def health(self, _: Request) -> Response:
        return Response(status_code=204)

    def _computer(self, request: Request) -> Computer:
        assert request.headers["x-access-token"] == "token"
        return self.computers[request.headers["e2b-sandbox-id"]]

    async def upload(self, request: Request) -> Response:
        path = request.query_params["path"]
        async with request.form() as form:
            file = form["file"]
            assert isinstance(file, UploadFile)
            self._computer(request).at(path).write_bytes(await file.read())
        return JSONResponse([{"name": File(path).name, "type": "file", "path": path}])

    async def download(self, request: Request) -> Response:
        path = self._computer(request).at(request.query_params["path"])
        if path.is_file():
            return FileResponse(path)
        return JSONResponse({"code": 404, "message": "file not found"}, 404)

    async def start(self, request: Request) -> Response:
        assert request.headers["content-type"] == "application/connect+json"
        body = json.loads((await request.body())[5:])["process"]
        words = [body["cmd"], *body["args"]]
        output = self._stream_output(self._computer(request), words)
        return StreamingResponse(output, media_type="application/connect+json")

    async def _stream_output(self, computer: Computer, words: list[str]) -> AsyncIterator[bytes]:
        process = await computer.start(words)
        yield _message({"event": {"start": {"pid": process.pid}}})
        async for stream, part in output_of(process):
            name = "stdout" if stream == 1 else "stderr"
            yield _message({"event": {"data": {name: base64.b64encode(part).decode()}}})
        end = {"exitCode": process.returncode, "exited": True, "status": "exited"}
        yield _message({"event": {"end": end}})
        yield _message({}, LAST)


def _message(content: dict[str, Any], flags: int = 0) -> bytes:
    text = json.dumps(content).encode()
    return struct.pack(">BL", flags, len(text)) + text
