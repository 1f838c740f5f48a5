"""Daytona's API and the toolbox in each of its sandboxes, as far as commands need them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from tests.fakes.computer import Computer, told


@dataclass
class Daytona:
    root: File
    url: str = ""
    sandboxes: dict[str, dict[str, Any]] = field(default_factory=dict)
    computers: dict[str, Computer] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    memory: int = 1
    blocks: bool = True
    """Whether it does as it is told where a network shall be blocked."""
    count: int = 0

    @property
    def alive(self) -> list[str]:
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
        asked = await request.json()
        if asked.get("snapshot", "small") not in {"small", "large"}:
            return JSONResponse({"message": "Snapshot not found"}, 404)
        self.count += 1
        id = f"sandbox-{self.count}"
        self.created.append(asked)
        self.computers[id] = Computer(self.root / id, "/tmp/carrel")
        self.sandboxes[id] = {
            "id": id,
            "state": "creating",
            "memory": self.memory,
            "networkBlockAll": asked["networkBlockAll"] and self.blocks,
        }
        return JSONResponse(self.sandboxes[id])

    async def read(self, request: Request) -> Response:
        found = self.sandboxes.get(request.path_params["id"])
        if found is None:
            return JSONResponse({"message": "Sandbox not found"}, 404)
        found |= {"state": "started", "toolboxProxyUrl": f"{self.url}/toolbox"}
        return JSONResponse(found)

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
        """Its words are told apart by spaces, and both outputs come as one."""
        asked = await request.json()
        assert not {'"', "'", "\\"} & set(asked["command"])
        process = await self.computers[request.path_params["id"]].start(asked["command"].split())
        said = b"".join([part async for _, part in told(process)])
        return JSONResponse({"exitCode": process.returncode, "result": said.decode()})
