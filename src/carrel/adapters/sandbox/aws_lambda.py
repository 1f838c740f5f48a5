"""Sandbox provider over AWS Lambda; the function runs `lambda_function.py`.

One invocation runs one command and carries its files and changes, so about 4 MB fit each way.
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
    InvalidManifest,
    RemoteChanges,
    find_changes,
    parse_manifest,
)
from carrel.adapters.sandbox.remote.options import (
    memory_limit_reason,
    refuse_options,
    refuse_persistent,
)
from carrel.adapters.sandbox.remote.remote_run import (
    EXIT_MACHINE_LOST,
    CommandEnd,
    RemoteReport,
    check_spec,
    discard_changes,
    expected_files,
    result_of,
)
from carrel.adapters.sandbox.remote.tar_transfer import (
    TransferDamaged,
    max_archive_bytes,
    pack_tar,
    unpack_tar,
)
from carrel.core.identifiers import Path
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    CommandResult,
    CommandSpec,
    ResourceLimits,
    SandboxUnavailable,
)

_MAX_PAYLOAD_BYTES: Final = 6 * 2**20
"""Limit of a synchronous invocation, each way."""
_MAX_SECONDS: Final = 840
_GRACE_SECONDS: Final = 30
_MAX_CONCURRENT: Final = 64
_GZIP_WBITS: Final = 31


class LambdaFunctions(Struct, frozen=True):
    """Lambda functions and how to reach them."""

    without_network: str = ""
    """Function in a network without egress."""
    with_network: str = ""
    memory_mb: int = 1024
    region: str = ""
    endpoint: str = ""
    access_key: str = ""
    secret_key: str = ""
    """If no keys are set, the SDK's own configuration is used."""


class LambdaResponse(Struct, rename="camel"):
    """Response of the function."""

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
    """Sandbox provider that runs commands in AWS Lambda.

    The function limits time, output, processes and disk; AWS limits memory.
    """

    tier = "lambda"

    def __init__(self, functions: LambdaFunctions) -> None:
        self._functions = functions
        self._limiter: CapacityLimiter | None = None

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        if not self._function(limits):
            with_or_without = "with" if limits.network else "without"
            return f"no lambda function {with_or_without} network access is configured"
        if limits.seconds > _MAX_SECONDS:
            return f"lambda commands are limited to {_MAX_SECONDS} seconds"
        return memory_limit_reason(
            "lambda", self._functions.memory_mb, limits
        ) or refuse_persistent("lambda", persistent)

    def _function(self, limits: ResourceLimits) -> str:
        functions = self._functions
        return functions.with_network if limits.network else functions.without_network

    def run(
        self, spec: CommandSpec, blobs: BlobReader
    ) -> AbstractAsyncContextManager[CommandResult]:
        return self._run(spec, blobs)

    @asynccontextmanager
    async def _run(self, spec: CommandSpec, blobs: BlobReader) -> AsyncIterator[CommandResult]:
        check_spec(spec)
        refuse_options(spec.options)
        if reason := self.unsupported_reason(spec.limits):
            raise SandboxUnavailable(reason)
        files = spec.files or {}
        contents = await blobs.get({file.blob for file in files.values()})
        payload = _encode_request(spec, await asyncio.to_thread(pack_tar, files, contents, {}))
        response = await self._invoke_in_thread(spec, payload)
        with tempfile.SpooledTemporaryFile(max_size=_MAX_PAYLOAD_BYTES) as spool:
            yield result_of(
                await asyncio.to_thread(_report_from_response, response, spec, spool), spool
            )

    @cached_property
    def _client(self) -> Any:
        functions = self._functions
        return boto3.session.Session(
            aws_access_key_id=functions.access_key or None,
            aws_secret_access_key=functions.secret_key or None,
            region_name=functions.region or None,
        ).client(
            "lambda",
            endpoint_url=functions.endpoint or None,
            config=Config(
                connect_timeout=10,
                read_timeout=_MAX_SECONDS + _GRACE_SECONDS,
                # A command must never run twice.
                retries={"total_max_attempts": 1},
                max_pool_connections=_MAX_CONCURRENT,
            ),
        )

    async def _invoke_in_thread(self, spec: CommandSpec, payload: bytes) -> LambdaResponse | None:
        """Return the response; None if AWS ended the function. Raises SandboxUnavailable."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(_MAX_CONCURRENT)
        try:
            failed, body = await to_thread.run_sync(
                self._invoke,
                self._function(spec.limits),
                payload,
                abandon_on_cancel=True,
                limiter=self._limiter,
            )
        except (BotoCoreError, ClientError) as problem:
            raise SandboxUnavailable(
                f"lambda invocation failed: {type(problem).__name__}"
            ) from problem
        return None if failed else _decode_response(body)

    def _invoke(self, function: str, payload: bytes) -> tuple[bool, bytes]:
        response = self._client.invoke(FunctionName=function, Payload=payload)
        return "FunctionError" in response, response["Payload"].read()


def _encode_request(spec: CommandSpec, archive: bytes) -> bytes:
    limits = spec.limits
    files = base64.b64encode(gzip.compress(archive, 6)).decode()
    payload = msgspec.json.encode(
        {
            "command": spec.command,
            "files": files,
            "env": dict(spec.env),
            "look": spec.files is not None,
            "seconds": limits.seconds,
            "outputBytes": limits.output_bytes,
            "memoryMb": limits.memory_mb,
            "processes": limits.processes,
            "diskMb": limits.disk_mb,
        }
    )
    if len(payload) > _MAX_PAYLOAD_BYTES:
        raise SandboxUnavailable(
            f"payload of {len(payload)} bytes exceeds lambda's limit of {_MAX_PAYLOAD_BYTES}"
        )
    return payload


def _decode_response(body: bytes) -> LambdaResponse | None:
    try:
        response = msgspec.json.decode(body, type=LambdaResponse)
    except msgspec.DecodeError:
        return None
    if response.refused is not None:
        raise SandboxUnavailable(response.refused[:200])
    return response


def _report_from_response(
    response: LambdaResponse | None, spec: CommandSpec, spool: IO[bytes]
) -> RemoteReport:
    if response is None:
        changes = discard_changes("the function exceeded its memory or time limit")
        return RemoteReport(
            CommandEnd(EXIT_MACHINE_LOST, timed_out=False, milliseconds=0), b"", b"", changes, {}
        )
    changes, offsets = _changes_from_response(response, spec, spool)
    end = CommandEnd(response.exit_code, response.timed_out, response.milliseconds)
    return RemoteReport(
        end,
        _bounded_output(response.stdout, spec),
        _bounded_output(response.stderr, spec),
        changes,
        offsets,
    )


def _bounded_output(text: str, spec: CommandSpec) -> bytes:
    output = BoundedOutput(spec.limits.output_bytes)
    output(_decode_base64(text))
    return output.marked_content


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _changes_from_response(
    response: LambdaResponse, spec: CommandSpec, spool: IO[bytes]
) -> tuple[RemoteChanges, Mapping[Path, int]]:
    if spec.files is None:
        return RemoteChanges(), {}
    if response.too_large is not None or response.listing is None:
        reason = f"its {response.too_large} bytes exceed lambda's response limit"
        return discard_changes(f"{reason} ({response.most_answered})"), {}
    try:
        manifest = parse_manifest(_decode_base64(response.listing))
        changes = find_changes(manifest, spec.files, spec.limits)
        return changes, _unpack_changes(response, changes, spool)
    except (InvalidManifest, TransferDamaged) as problem:
        return discard_changes(str(problem)), {}


def _unpack_changes(
    response: LambdaResponse, changes: RemoteChanges, spool: IO[bytes]
) -> Mapping[Path, int]:
    expected = expected_files(changes.changed)
    if not expected:
        return {}
    max_bytes = max_archive_bytes(expected.values())
    try:
        # Bounds decompression by the announced sizes.
        spool.write(
            zlib.decompressobj(_GZIP_WBITS).decompress(_decode_base64(response.changes), max_bytes)
        )
    except zlib.error:
        raise TransferDamaged("the response is not a tar archive") from None
    return unpack_tar(spool, expected)
