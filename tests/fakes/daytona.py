"""Daytona's API and the toolbox of its sandboxes, as far as commands need them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from tests.fakes.computer import Computer, output_of


@dataclass
class Daytona:
    root: File
    url: str = ""
    sandboxes: dict[str, dict[str, Any]] = field(default_factory=dict)
    computers: dict[str, Computer] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    memory: int = 1
    blocks: bool = True
    """Whether the service blocks the network when requested."""
    count: int = 0

    @property
    def running_instances(self) -> list[str]:
        return list(self.sandboxes)

    def app(self) -> Starlette:
        box = "/toolbox/{id}"
        return Starlette(
            routes=[
                Route("/api/sandbox", self.create, methods=["POST"]),
                Route("/api/sandbox/{id}", self.read, methods=["GET"]),
                Route("/api/sandbox/{id}", self.delete, methods=["DELETE"]),
                Route(f"{box}/files/upload", self.upload, methods=["POST"]),
                Route(f"{box}/files/download", self.download, methods=["GET"]),
                Route(f"{box}/process/execute", self.execute, methods=["POST"]),
            ]
        )

    async def create(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer key":
            return JSONResponse({"message": "Unauthorized"}, 401)
        body = await request.json()
        if body.get("snapshot", "small") not in {"small", "large"}:
            return JSONResponse({"message": "Snapshot not found"}, 404)
        self.count += 1
        id = f"sandbox-{self.count}"
        self.created.append(body)
        self.computers[id] = Computer(self.root / id, "/tmp/carrel")
        self.sandboxes[id] = {
            "id": id,
            "state": "creating",
            "memory": self.memory,
            "networkBlockAll": body["networkBlockAll"] and self.blocks,
        }
        return JSONResponse(self.sandboxes[id])

    async def read(self, request: Request) -> Response:
        sandbox = self.sandboxes.get(request.path_params["id"])
        if sandbox is None:
            return JSONResponse({"message": "Sandbox not found"}, 404)
        sandbox |= {"state": "started", "toolboxProxyUrl": f"{self.url}/toolbox"}
        return JSONResponse(sandbox)

    async def delete(self, request: Request) -> Response:
        if self.sandboxes.pop(request.path_params["id"], None) is None:
            return JSONResponse({"message": "Sandbox not found"}, 404)
        self.computers.pop(request.path_params["id"]).destroy()
        return Response(status_code=200)

    def _at(self, request: Request) -> File:
        assert request.headers["authorization"] == "Bearer key"
        return self.computers[request.path_params["id"]].at(request.query_params["path"])

    async def upload(self, request: Request) -> Response:
        async with request.form() as form:
            file = form["file"]
            assert isinstance(file, UploadFile)
            self._at(request).write_bytes(await file.read())
        return Response(status_code=200)

    async def download(self, request: Request) -> Response:
        path = self._at(request)
        return FileResponse(path) if path.is_file() else JSONResponse({}, 404)

    async def execute(self, request: Request) -> Response:
        """Its words are separated by spaces, and both outputs are merged."""
        body = await request.json()
        assert not {'"', "'", "\\"} & set(body["command"])
        process = await self.computers[request.path_params["id"]].start(body["command"].split())
        output = b"".join([part async for _, part in output_of(process)])
        return JSONResponse({"exitCode": process.returncode, "result": output.decode()})
