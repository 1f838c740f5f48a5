"""Commands in a function of AWS Lambda, which runs `lambda_function.py` of this package.

One invocation is one command: its files go there and its changes come back in the invocation, so
there is room for little more than four megabytes each way.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import tempfile
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import IO, Annotated, Any, Final

import boto3
import msgspec
from anyio import CapacityLimiter, to_thread
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Meta, Struct

from carrel.adapters.sandbox.remote.bounded_output import BoundedOutput
from carrel.adapters.sandbox.remote.manifest import (
    ManifestUnreadable,
    RemoteChanges,
    differences,
    listed,
)
from carrel.adapters.sandbox.remote.options import no_options, refuse_persistent, too_much_memory
from carrel.adapters.sandbox.remote.remote_run import (
    LOST,
    CommandEnd,
    RemoteReport,
    check_order,
    expected_of,
    nothing,
    result_of,
)
from carrel.adapters.sandbox.remote.tar_transfer import (
    TransferDamaged,
    most_bytes,
    pack_tar,
    unpack_tar,
)
from carrel.core.identifiers import Path
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    Fetch,
    ResourceLimits,
    SandboxUnavailable,
)

_MOST_SENT: Final = 6 * 2**20
"""What an invocation that is waited for may carry, each way."""
_LONGEST: Final = 840
_GRACE: Final = 30
_AT_ONCE: Final = 64
_GZIP: Final = 31


class LambdaFunctions(Struct, frozen=True):
    """Which functions there are, and how they are reached."""

    without_network: str = ""
    """One in a network that has no way out."""
    with_network: str = ""
    memory_mb: int = 1024
    region: str = ""
    endpoint: str = ""
    access_key: str = ""
    secret_key: str = ""
    """What the SDK finds itself, where there are no keys here."""


class LambdaResponse(Struct, rename="camel"):
    """What the function tells."""

    refused: str | None = None
    exit_code: Annotated[int, Meta(ge=0, le=255)] | None = None
    timed_out: bool = False
    milliseconds: int = 0
    stdout: str = ""
    stderr: str = ""
    listing: str | None = None
    changes: str = ""
    too_large: int | None = None
    most_answered: int = 0


class LambdaSandbox:
    """Time, output, processes and disk are bounded by the function, its memory by AWS."""

    tier = "lambda"

    def __init__(self, functions: LambdaFunctions) -> None:
        self._functions = functions
        self._limiter: CapacityLimiter | None = None

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        if not self._function(bounds):
            with_or_without = "with" if bounds.network else "without"
            return f"lambda has no function {with_or_without} a network here"
        if bounds.seconds > _LONGEST:
            return f"lambda runs no command for longer than {_LONGEST} seconds"
        return too_much_memory("lambda", self._functions.memory_mb, bounds) or refuse_persistent(
            "lambda", persistent
        )

    def _function(self, bounds: ResourceLimits) -> str:
        here = self._functions
        return here.with_network if bounds.network else here.without_network

    def run(self, order: CommandSpec, fetch: Fetch) -> AbstractAsyncContextManager[CommandResult]:
        return self._run(order, fetch)

    @asynccontextmanager
    async def _run(self, order: CommandSpec, fetch: Fetch) -> AsyncIterator[CommandResult]:
        check_order(order)
        no_options(order.options)
        if reason := self.unsupported_reason(order.bounds):
            raise SandboxUnavailable(reason)
        files = order.files or {}
        contents = await fetch({placed.blob for placed in files.values()})
        payload = _payload(order, await asyncio.to_thread(pack_tar, files, contents, {}))
        answer = await self._invoked(order, payload)
        with tempfile.SpooledTemporaryFile(max_size=_MOST_SENT) as spool:
            yield result_of(await asyncio.to_thread(_told, answer, order, spool), spool)

    @cached_property
    def _client(self) -> Any:
        here = self._functions
        return boto3.session.Session(
            aws_access_key_id=here.access_key or None,
            aws_secret_access_key=here.secret_key or None,
            region_name=here.region or None,
        ).client(
            "lambda",
            endpoint_url=here.endpoint or None,
            config=Config(
                connect_timeout=10,
                read_timeout=_LONGEST + _GRACE,
                # A command is never run twice.
                retries={"total_max_attempts": 1},
                max_pool_connections=_AT_ONCE,
            ),
        )

    async def _invoked(self, order: CommandSpec, payload: bytes) -> LambdaResponse | None:
        """What the function told, or None where it was ended by AWS. Raises Refused."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(_AT_ONCE)
        try:
            failed, body = await to_thread.run_sync(
                self._invoke,
                self._function(order.bounds),
                payload,
                abandon_on_cancel=True,
                limiter=self._limiter,
            )
        except (BotoCoreError, ClientError) as problem:
            raise SandboxUnavailable(
                f"lambda did not run it: {type(problem).__name__}"
            ) from problem
        return None if failed else _answer(body)

    def _invoke(self, function: str, payload: bytes) -> tuple[bool, bytes]:
        said = self._client.invoke(FunctionName=function, Payload=payload)
        return "FunctionError" in said, said["Payload"].read()


def _payload(order: CommandSpec, parcel: bytes) -> bytes:
    bounds = order.bounds
    files = base64.b64encode(gzip.compress(parcel, 6)).decode()
    payload = msgspec.json.encode(
        {
            "command": order.command,
            "files": files,
            "env": dict(order.env),
            "look": order.files is not None,
            "seconds": bounds.seconds,
            "outputBytes": bounds.output_bytes,
            "memoryMb": bounds.memory_mb,
            "processes": bounds.processes,
            "diskMb": bounds.disk_mb,
        }
    )
    if len(payload) > _MOST_SENT:
        raise SandboxUnavailable(
            f"the command and its files take {len(payload)} bytes, and lambda takes {_MOST_SENT}"
        )
    return payload


def _answer(body: bytes) -> LambdaResponse | None:
    try:
        answer = msgspec.json.decode(body, type=LambdaResponse)
    except msgspec.DecodeError:
        return None
    if answer.refused is not None:
        raise SandboxUnavailable(answer.refused[:200])
    return answer


def _told(answer: LambdaResponse | None, order: CommandSpec, spool: IO[bytes]) -> RemoteReport:
    if answer is None:
        left = nothing("the function was ended, for its memory or its time")
        return RemoteReport(CommandEnd(LOST, timed_out=False, milliseconds=0), b"", b"", left, {})
    left, offsets = _left(answer, order, spool)
    end = CommandEnd(answer.exit_code, answer.timed_out, answer.milliseconds)
    return RemoteReport(
        end, _said(answer.stdout, order), _said(answer.stderr, order), left, offsets
    )


def _said(text: str, order: CommandSpec) -> bytes:
    kept = BoundedOutput(order.bounds.output_bytes)
    kept(_bytes(text))
    return kept.marked


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _left(
    answer: LambdaResponse, order: CommandSpec, spool: IO[bytes]
) -> tuple[RemoteChanges, Mapping[Path, int]]:
    if order.files is None:
        return RemoteChanges(), {}
    if answer.too_large is not None or answer.listing is None:
        reason = f"its {answer.too_large} bytes are more than lambda gives back"
        return nothing(f"{reason} ({answer.most_answered})"), {}
    try:
        now = listed(_bytes(answer.listing))
        left = differences(now, order.files, order.bounds)
        return left, _unpacked(answer, left, spool)
    except (ManifestUnreadable, TransferDamaged) as problem:
        return nothing(str(problem)), {}


def _unpacked(answer: LambdaResponse, left: RemoteChanges, spool: IO[bytes]) -> Mapping[Path, int]:
    expected = expected_of(left.changed)
    if not expected:
        return {}
    most = most_bytes(expected.values())
    try:
        # No more than was announced, however much it would become.
        spool.write(zlib.decompressobj(_GZIP).decompress(_bytes(answer.changes), most))
    except zlib.error:
        raise TransferDamaged("what came back is no archive") from None
    return unpack_tar(spool, expected)
