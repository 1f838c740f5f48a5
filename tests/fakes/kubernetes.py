"""A Kubernetes API server, as far as sandboxes need it: pods, and exec over a websocket."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from tests.fakes.computer import Computer, output_of

NAMESPACES = {"offline", "online"}


def kubeconfig(port: int) -> str:
    """A kubeconfig as JSON, which is YAML."""
    cluster = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    user = {"name": "carrel", "user": {"token": "token"}}
    context = {"name": "it", "context": {"cluster": "here", "user": "carrel"}}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "it"}
    return json.dumps(config | {"clusters": [cluster], "users": [user], "contexts": [context]})


@dataclass
class Cluster:
    """Pods, which are pending at the first read and running afterwards."""

    root: File
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    computers: dict[str, Computer] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    start_problem: str | None = None
    """Reason why no pod starts."""

    @property
    def running_instances(self) -> list[str]:
        return list(self.pods)

    def app(self) -> Starlette:
        at = "/api/v1/namespaces/{namespace}/pods"
        return Starlette(
            routes=[
                Route(at, self.create, methods=["POST"]),
                Route(f"{at}/{{name}}", self.read, methods=["GET"]),
                Route(f"{at}/{{name}}", self.delete, methods=["DELETE"]),
                WebSocketRoute(f"{at}/{{name}}/exec", self.execute),
            ]
        )

    async def create(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer token":
            return JSONResponse({"kind": "Status", "status": "Failure"}, 401)
        if request.path_params["namespace"] not in NAMESPACES:
            return JSONResponse({"kind": "Status", "status": "Failure"}, 404)
        pod = await request.json()
        name = pod["metadata"]["name"]
        pod["metadata"]["namespace"] = request.path_params["namespace"]
        self.created.append(pod)
        self.pods[name] = pod
        pod["status"] = {"phase": "Pending"}
        mounts = pod["spec"]["containers"][0]["volumeMounts"]
        self.computers[name] = Computer(self.root / name, mounts[0]["mountPath"])
        return JSONResponse(pod, 201)

    async def read(self, request: Request) -> Response:
        pod = self.pods.get(request.path_params["name"])
        if pod is None:
            return JSONResponse({"kind": "Status", "status": "Failure"}, 404)
        answer = json.loads(json.dumps(pod))
        pod["status"]["phase"] = "Pending" if self.start_problem else "Running"
        if self.start_problem:
            waiting = {"waiting": {"reason": self.start_problem}}
            status = {"name": "command", "image": "", "imageID": "", "ready": False}
            answer["status"]["containerStatuses"] = [status | {"restartCount": 0, "state": waiting}]
        return JSONResponse(answer)

    async def delete(self, request: Request) -> Response:
        name = request.path_params["name"]
        pod = self.pods.pop(name, None)
        if pod is None:
            return JSONResponse({"kind": "Status", "status": "Failure"}, 404)
        self.computers.pop(name).destroy()
        return JSONResponse(pod)

    async def execute(self, socket: WebSocket) -> None:
        name, query = socket.path_params["name"], socket.query_params
        if self.pods.get(name, {}).get("status") != {"phase": "Running"}:
            return await socket.close(1008)
        assert socket.headers["authorization"] == "Bearer token"
        await socket.accept("v4.channel.k8s.io")
        takes = query.get("stdin") == "true"
        process = await self.computers[name].start(query.getlist("command"), stdin=takes)
        feeding = asyncio.create_task(_feed(socket, process))
        async for stream, part in output_of(process):
            await socket.send_bytes(bytes([stream]) + part)
        feeding.cancel()
        with suppress(WebSocketDisconnect):
            await socket.send_bytes(b"\x03" + json.dumps(_status(process.returncode or 0)).encode())
            await socket.close()


async def _feed(socket: WebSocket, process: asyncio.subprocess.Process) -> None:
    """Forward the first channel. In version 4 of the protocol it has no end marker."""
    try:
        while message := await socket.receive_bytes():
            assert message[0] == 0 and process.stdin is not None
            process.stdin.write(message[1:])
            await process.stdin.drain()
    except (WebSocketDisconnect, BrokenPipeError, ConnectionResetError):
        return


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    exit_code = 128 - code if code < 0 else code
    cause = {"reason": "ExitCode", "message": str(exit_code)}
    details = {"causes": [cause]}
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": details}
