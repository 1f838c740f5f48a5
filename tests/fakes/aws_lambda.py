"""AWS Lambda's Invoke API: each invocation runs our function in a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as File

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from carrel.adapters.sandbox import lambda_function

MAX_PAYLOAD_BYTES = 6 * 2**20
SERVE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import lambda_function

class Context:
    memory_limit_in_mb = sys.argv[3]
    def get_remaining_time_in_millis(self):
        return int(sys.argv[4])

lambda_function.TEMPORARY = sys.argv[2]
print(json.dumps(lambda_function.run(json.load(sys.stdin), Context())))
"""


@dataclass
class Functions:
    """One function for each of its names, with a new instance for each call."""

    root: File
    names: set[str]
    memory_mb: int = 512
    milliseconds: int = 900_000
    running_instances: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    """Names in the /tmp directories of instances after their calls."""
    fails: bool = False
    count: int = 0

    def app(self) -> Starlette:
        at = "/2015-03-31/functions/{name}/invocations"
        return Starlette(routes=[Route(at, self.invoke, methods=["POST"])])

    async def invoke(self, request: Request) -> Response:
        body, name = await request.body(), request.path_params["name"]
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=key/")
        if name not in self.names:
            return JSONResponse(
                {"Type": "User"}, 404, {"x-amzn-ErrorType": "ResourceNotFoundException"}
            )
        if len(body) > MAX_PAYLOAD_BYTES:
            return JSONResponse({}, 413, {"x-amzn-ErrorType": "RequestTooLargeException"})
        self.count += 1
        instance = self.root / f"instance-{self.count}"
        instance.mkdir()
        self.running_instances.append(instance.name)
        try:
            code, output = await self._serve(body, instance)
        finally:
            self.running_instances.remove(instance.name)
        self.leftovers += [entry.name for entry in instance.iterdir()]
        if code or self.fails or len(output) > MAX_PAYLOAD_BYTES:
            problem = {"errorType": "Runtime.ExitError", "errorMessage": "signal: killed"}
            return Response(json.dumps(problem), headers={"X-Amz-Function-Error": "Unhandled"})
        return Response(output, media_type="application/json")

    async def _serve(self, body: bytes, instance: File) -> tuple[int, bytes]:
        module_directory = str(File(lambda_function.__file__).parent)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", SERVE, module_directory, str(instance)),
            *(str(self.memory_mb), str(self.milliseconds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            env={"AWS_SECRET_ACCESS_KEY": "of the role", "PATH": os.environ["PATH"]},
        )
        try:
            output, _ = await process.communicate(body)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode or 0, output
