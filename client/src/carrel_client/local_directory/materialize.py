"""Write a workspace to a directory: fetch in one request, verify, swap in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from carrel_client.drivers import Sleep, Steps, run_blocking
from carrel_client.errors import (
    CarrelError,
    DirectoryLocked,
    IncompleteWorkspace,
    InvalidResponse,
    NotACarrelDirectory,
)
from carrel_client.file_models import content_of
from carrel_client.http_messages import HttpRequest, HttpResponse
from carrel_client.local_directory.atomic_directory import (
    DirectoryLock,
    ProgressCallback,
    TargetDirectory,
)
from carrel_client.local_directory.local_files import digest, is_intact
from carrel_client.local_directory.path_safety import STATE_FILE, FindClash, refuse_unsafe
from carrel_client.requests import api_path, send_with_retry

MAX_LOCK_SECONDS: Final = 120.0
"""Maximum wait for another process that writes the same directory."""

_POLL_SECONDS: Final = 0.05
_FORMAT: Final = 1
_AGENT_HEADER: Final = "carrel-agent"
_ETAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializeResult:
    """Content of a directory after ``materialize``."""

    directory: str
    files: Mapping[str, str]
    """The SHA-256 of every file as it was served, by path."""
    fingerprint: str
    """Hash of paths and rendered contents; equal files give equal fingerprints."""
    etag: str | None
    """Etag of the listing; None if the next call must fetch everything."""
    changed: bool
    """Whether a file in the directory differs from before the call."""
    stale: bool = False
    """Whether the call failed and these are the files of an earlier call."""
    problem: Exception | None = field(default=None, compare=False)
    """Error of the failed call if stale."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Reasons by path of tolerated files whose content is not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryState:
    """The content of the directory's state file."""

    format: int
    server: str
    agent: str
    """Id or slug as given by the caller."""
    agent_id: str | None
    """Id in the server's response, None if absent."""
    etag: str | None
    fingerprint: str
    files: Mapping[str, str]
    unavailable: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, content: bytes) -> DirectoryState | None:
        """Return None for a file that ``materialize`` did not write."""
        try:
            state = cls(**json.loads(content))
            is_ours = state.format == _FORMAT and fingerprint_of(state.files) == state.fingerprint
            is_ours &= state.etag is None or _ETAG.fullmatch(state.etag) is not None
            is_ours &= isinstance(state.unavailable, dict)
            is_ours &= isinstance(state.server, str) and isinstance(state.agent, str)
            is_ours &= isinstance(state.agent_id, str | None)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        return state if is_ours else None

    def encode(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, indent=1).encode() + b"\n"

    def result(self, directory: TargetDirectory, *, changed: bool) -> MaterializeResult:
        return MaterializeResult(
            directory=directory.target,
            files=MappingProxyType(dict(self.files)),
            fingerprint=self.fingerprint,
            etag=self.etag,
            changed=changed,
            unavailable=dict(self.unavailable),
        )


@dataclass(frozen=True, slots=True)
class MaterializeRequest:
    server: str
    agent: str
    stale_ok: bool = False
    tolerate: Collection[str] = ()
    progress: ProgressCallback | None = None

    def matches(self, state: DirectoryState) -> bool:
        """Whether the directory was written for the same agent, by name."""
        return state.server == self.server and self.agent in {state.agent, state.agent_id}


@dataclass(frozen=True, slots=True)
class VerifiedListing:
    """A listing that passed every check."""

    contents: Mapping[str, bytes]
    unavailable: Mapping[str, str]
    etag: str | None
    agent_id: str | None

    def state(self, request: MaterializeRequest) -> DirectoryState:
        files = {path: digest(content) for path, content in sorted(self.contents.items())}
        return DirectoryState(
            format=_FORMAT,
            server=request.server,
            agent=request.agent,
            agent_id=self.agent_id,
            # A repair on the server need not change the etag: fetch all again.
            etag=None if self.unavailable else self.etag,
            fingerprint=fingerprint_of(files),
            files=files,
            unavailable=dict(self.unavailable),
        )


def fingerprint_of(files: Mapping[str, str]) -> str:
    total = sha256()
    for path, content in sorted(files.items()):
        total.update(f"{path}\0{content}\n".encode())
    return total.hexdigest()


def materialize(
    path: str | os.PathLike[str], request: MaterializeRequest
) -> Steps[MaterializeResult]:
    """Replace a directory by an agent's files; on error it stays unchanged."""
    directory = yield from run_blocking(lambda: TargetDirectory.at(path))
    lock = directory.lock()
    try:
        yield from _acquire(directory, lock)
        yield from run_blocking(directory.recover)
        state = yield from run_blocking(lambda: _load_state(directory, request))
        try:
            response = yield from _fetch(directory, request, state)
        except (CarrelError, OSError) as error:
            return (yield from _stale_result(directory, request, state, error))
        state = state if state is not None and _is_same_agent(response, state) else None
        try:
            return (yield from _apply(directory, request, state, response))
        except (CarrelError, OSError) as error:
            return (yield from _stale_result(directory, request, state, error))
    finally:
        lock.close()


def _load_state(directory: TargetDirectory, request: MaterializeRequest) -> DirectoryState | None:
    """The state of an earlier call for the same agent. Raises NotACarrelDirectory."""
    content = directory.read_state()
    if content is None:
        return None
    state = DirectoryState.parse(content)
    if state is None:
        path = os.path.join(directory.target, STATE_FILE)
        raise NotACarrelDirectory(
            f"{path} was not written by materialize; its directory was not changed"
        )
    return state if request.matches(state) else None


def _is_same_agent(response: HttpResponse, state: DirectoryState) -> bool:
    """Whether the name still belongs to the agent of the earlier call."""
    agent_id = response.headers.get(_AGENT_HEADER)
    return agent_id is None or agent_id == state.agent_id


def _stale_result(
    directory: TargetDirectory,
    request: MaterializeRequest,
    state: DirectoryState | None,
    error: Exception,
) -> Steps[MaterializeResult]:
    """The files of the earlier call, if the caller accepts them. Raises the error."""
    if not request.stale_ok or state is None or not (yield from _is_intact(directory, state)):
        raise error
    if not set(state.unavailable) <= set(request.tolerate):
        raise IncompleteWorkspace(state.unavailable) from error
    return replace(state.result(directory, changed=False), stale=True, problem=error)


def _acquire(directory: TargetDirectory, lock: DirectoryLock) -> Steps[None]:
    for _ in range(int(MAX_LOCK_SECONDS / _POLL_SECONDS)):
        if lock.try_acquire():
            return
        yield Sleep(_POLL_SECONDS)
    raise DirectoryLocked(
        f"another process has been writing {directory.target} for {MAX_LOCK_SECONDS:.0f} s"
    )


def _is_intact(directory: TargetDirectory, state: DirectoryState) -> Steps[bool]:
    return (yield from run_blocking(lambda: is_intact(directory.target, state.files)))


def _fetch(
    directory: TargetDirectory, request: MaterializeRequest, state: DirectoryState | None
) -> Steps[HttpResponse]:
    """The listing, or 304 if the directory holds it unchanged."""
    response = yield from _get_listing(request.agent, state.etag if state else None)
    if response.status == 304 and state is not None:
        is_current = _is_same_agent(response, state) and (yield from _is_intact(directory, state))
        return response if is_current else (yield from _get_listing(request.agent, None))
    return response


def _apply(
    directory: TargetDirectory,
    request: MaterializeRequest,
    state: DirectoryState | None,
    response: HttpResponse,
) -> Steps[MaterializeResult]:
    if response.status == 304 and state is not None:
        return state.result(directory, changed=False)
    listing = yield from run_blocking(
        lambda: verify_listing(response, request.tolerate, directory.find_clash)
    )
    new_state = yield from run_blocking(lambda: listing.state(request))
    is_same = state is not None and state.fingerprint == new_state.fingerprint
    if is_same and (yield from _is_intact(directory, new_state)):
        yield from run_blocking(lambda: directory.write_state(new_state.encode()))
    else:
        is_same = False
        encoded = new_state.encode()
        yield from run_blocking(
            lambda: directory.replace(listing.contents, encoded, request.progress)
        )
    return new_state.result(directory, changed=not is_same)


def _get_listing(agent: str, etag: str | None) -> Steps[HttpResponse]:
    headers = {} if etag is None else {"If-None-Match": etag}
    path = api_path("agents", agent, "files")
    return (yield from send_with_retry(HttpRequest("GET", path, {"content": "true"}, headers)))


def verify_listing(
    response: HttpResponse, tolerate: Collection[str], find_clash: FindClash
) -> VerifiedListing:
    """Raises InvalidResponse, IncompleteWorkspace or UnsafePath."""
    if response.status != 200:
        raise InvalidResponse("the response is not a listing", status=response.status)
    rows = _rows(response.json())
    refuse_unsafe((row["path"] for row in rows), find_clash)
    contents: dict[str, bytes] = {}
    unavailable: dict[str, str] = {}
    for row in rows:
        if isinstance(row.get("content"), str) and row.get("error") is None:
            contents[row["path"]] = _content(row)
        else:
            unavailable[row["path"]] = str(row.get("error") or "its content is not text")
    if missing := {path: why for path, why in unavailable.items() if path not in tolerate}:
        raise IncompleteWorkspace(missing)
    headers = response.headers
    return VerifiedListing(contents, unavailable, headers.get("etag"), headers.get(_AGENT_HEADER))


def _rows(listing: Any) -> list[dict[str, Any]]:
    rows = listing.get("files") if isinstance(listing, dict) else None
    is_valid = isinstance(rows, list) and all(
        isinstance(row, dict) and isinstance(row.get("path"), str) for row in rows
    )
    if not isinstance(rows, list) or not is_valid:
        raise InvalidResponse("the response is not a listing of files")
    return rows


def _content(row: Mapping[str, Any]) -> bytes:
    """The bytes as served. Raises InvalidResponse if they do not match their digest."""
    try:
        content = content_of(row)
    except UnicodeEncodeError:
        raise InvalidResponse(f"{row['path']!a}: its content is not valid Unicode") from None
    except ValueError:
        raise InvalidResponse(f"{row['path']!a}: its content is not base64") from None
    expected = row.get("renderedSha256")
    if expected is not None and expected != digest(content):
        raise InvalidResponse(f"{row['path']!a}: its content does not match its digest")
    return content
