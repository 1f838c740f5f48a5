"""Uploads, downloads and ranges of files as bytes."""

from __future__ import annotations

import hashlib
import mimetypes
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from carrel_client.byte_streams import DownloadTarget, Source, Target, open_source
from carrel_client.drivers import Sleep, Steps, TransportFailure, run_blocking
from carrel_client.errors import InvalidResponse, ValidationError
from carrel_client.file_models import FileRow, row_from_json
from carrel_client.http_messages import HttpRequest, HttpResponse
from carrel_client.requests import (
    MAX_ATTEMPTS,
    MAX_PAUSE_SECONDS,
    pause_before_retry,
    response_error,
    send_idempotent,
    send_with_retry,
    transport_error,
)

BYTES_TYPE: Final = "application/octet-stream"
_ACCEPT: Final = {"Accept": BYTES_TYPE, "Accept-Encoding": "identity"}
_MAX_SECONDS: Final = 24 * 3600.0
"""Longest download; the timeout between two chunks ends a silent one."""
_MIN_BYTES_PER_SECOND: Final = 64 * 1024
"""Slowest rate of an upload that does not exceed the deadline."""
_SHA256: Final = re.compile(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]+):")


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """What was downloaded."""

    content_type: str
    version: int
    etag: str
    size: int
    """Bytes that were written."""
    sha256: str


def upload(  # noqa: PLR0913 - options of a write
    url: str,
    path: str,
    source: Source,
    headers: Mapping[str, str],
    content_type: str | None,
    *,
    accept_template_update: bool,
    idempotency_key: str | None,
) -> Steps[FileRow]:
    """Send bytes with their digest; a retry reads them again."""
    opened = yield from run_blocking(lambda: open_source(source))
    try:
        query = {"contentType": content_type or guess_type(path)}
        query |= {"acceptTemplateUpdate": "true"} if accept_template_update else {}
        digest = b64encode(opened.sha256).decode()
        body = {
            "Content-Type": BYTES_TYPE,
            "Content-Length": str(opened.size),
            "Repr-Digest": f"sha-256=:{digest}:",
        }
        request = HttpRequest("PUT", url, query, {**headers, **body}, source=opened)
        request.extra_seconds = opened.size / _MIN_BYTES_PER_SECOND
        response = yield from send_idempotent(request, idempotency_key)
        return row_from_json(response.json())
    finally:
        if opened is not source:
            opened.close()


def read_bytes(
    url: str, query: Mapping[str, str], start: int | None, end: int | None
) -> Steps[bytes]:
    """The bytes of a file, or of a part of it, in memory."""
    return (yield from fetch(url, query, start, end)).content


def fetch(
    url: str, query: Mapping[str, str], start: int | None = None, end: int | None = None
) -> Steps[HttpResponse]:
    """A response with the bytes of a file, or of a part of it."""
    headers = dict(_ACCEPT)
    if start is not None or end is not None:
        first = start or 0
        if first < 0 or (end is not None and end <= first):
            raise ValidationError("a range has at least one byte: 0 <= start < end")
        headers["Range"] = f"bytes={first}-" + ("" if end is None else str(end - 1))
    response: HttpResponse = yield from send_with_retry(HttpRequest("GET", url, query, headers))
    if "Range" not in headers:
        expected = _digest_of(response)
        if expected is not None and hashlib.sha256(response.content).digest() != expected:
            raise InvalidResponse("the content does not match its digest")
    return response


def download(url: str, query: Mapping[str, str], target: Target) -> Steps[DownloadedFile]:
    """Receive a file in parts; after a failure only the rest is requested.

    Raises InvalidResponse if the bytes do not match their digest.
    """
    sink = DownloadTarget(target)
    try:
        response = yield from _receive(url, query, sink)
        sha256 = _digest_of(response)
        if sha256 is not None and sha256 != sink.sha256:
            raise InvalidResponse("the content does not match its digest")
        yield from run_blocking(sink.commit)
    finally:
        sink.discard()
    return _to_downloaded_file(response, sink)


def guess_type(path: str) -> str:
    """Media type by the name of a file."""
    if path.lower().endswith(".md"):
        return "text/markdown"
    return mimetypes.guess_type(path)[0] or BYTES_TYPE


class _Sink:
    """Writes a successful response to a target, from where the last one ended."""

    def __init__(self, target: DownloadTarget) -> None:
        self._target = target
        self.etag = ""

    def begin(self, response: HttpResponse) -> None:
        self.etag = response.headers.get("etag", "")
        if response.status != 206:
            self._target.restart()

    def write(self, part: bytes) -> None:
        self._target.write(part)


def _receive(url: str, query: Mapping[str, str], target: DownloadTarget) -> Steps[HttpResponse]:
    """Write the whole file; return the last response, without its body."""
    attempt, headers = 1, _ACCEPT
    while True:
        size = target.size
        request = HttpRequest("GET", url, query, headers)
        request.sink = sink = _Sink(target)
        request.started_at = time.monotonic() + _MAX_SECONDS
        try:
            response: HttpResponse = yield request
        except TransportFailure as failure:
            error, requested_pause = transport_error(failure)
        else:
            if response.is_success:
                return response
            error, requested_pause = response_error(response)
        attempt = attempt + 1 if target.size == size else 2
        pause = pause_before_retry(attempt - 1, requested_pause)
        if requested_pause is None or attempt > MAX_ATTEMPTS or pause > MAX_PAUSE_SECONDS:
            raise error
        yield Sleep(pause)
        if sink.etag:
            rest = {"Range": f"bytes={target.size}-", "If-Range": sink.etag}
            headers = {**_ACCEPT, **rest} if target.size else _ACCEPT


def _to_downloaded_file(response: HttpResponse, target: DownloadTarget) -> DownloadedFile:
    try:
        return DownloadedFile(
            response.headers["content-type"],
            int(response.headers["carrel-version"]),
            response.headers["etag"],
            target.size,
            target.sha256.hex(),
        )
    except (KeyError, ValueError):
        raise InvalidResponse("the response is not a file") from None


def _digest_of(response: HttpResponse) -> bytes | None:
    """SHA-256 of the whole content, if the response has it. Raises InvalidResponse."""
    match = _SHA256.search(response.headers.get("repr-digest", ""))
    try:
        return b64decode(match[1], validate=True) if match else None
    except ValueError:
        raise InvalidResponse("the response has no valid digest") from None
