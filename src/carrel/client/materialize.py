"""A whole workspace as a directory: fetched in one request, checked, and put in place at once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

from carrel.client.atomic_directory import DirectoryLock, TargetDirectory, Watch
from carrel.client.drivers import HttpRequest, Sleep, Steps, run_blocking
from carrel.client.errors import (
    CarrelError,
    DirectoryLocked,
    IncompleteWorkspace,
    InvalidResponse,
    NotACarrelDirectory,
)
from carrel.client.httpx_import import httpx
from carrel.client.local_files import digest, is_intact
from carrel.client.path_safety import STATE, Clash, refuse_unsafe
from carrel.client.requests import api_path, decode_json, send_with_retry

PATIENCE: Final = 120.0
"""Seconds to wait for another who materialises into the same directory."""

_POLL: Final = 0.05
_FORMAT: Final = 1
_AGENT: Final = "Carrel-Agent"
_ETAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializeResult:
    """What a directory now holds."""

    directory: str
    files: Mapping[str, str]
    """The SHA-256 of every file as it was served, by path."""
    fingerprint: str
    """The same wherever the same files are served: names that are rendered into them count."""
    etag: str | None
    """What the server knows the listing by; None where it has to be asked for all again."""
    changed: bool
    """Whether a file in the directory is now another than before the call."""
    stale: bool = False
    """Whether the server could not be asked, and this is what was there."""
    problem: Exception | None = field(default=None, compare=False)
    """Why it is stale."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Files that the server could not give and the caller does without, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryState:
    """What is noted in the directory itself."""

    format: int
    server: str
    agent: str
    """As the caller named it: by id or by slug."""
    agent_id: str | None
    """As the server named it, None where it did not."""
    etag: str | None
    fingerprint: str
    files: Mapping[str, str]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """What the server could not give and the caller did without."""

    @classmethod
    def parsed(cls, noted: bytes) -> DirectoryState | None:
        """None for what no call of ours has noted."""
        try:
            state = cls(**json.loads(noted))
            ours = state.format == _FORMAT and fingerprint_of(state.files) == state.fingerprint
            ours &= state.etag is None or _ETAG.fullmatch(state.etag) is not None
            ours &= isinstance(state.unavailable, dict)
            ours &= isinstance(state.server, str) and isinstance(state.agent, str)
            ours &= isinstance(state.agent_id, str | None)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        return state if ours else None

    def encoded(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, indent=1).encode() + b"\n"

    def result(self, place: TargetDirectory, *, changed: bool) -> MaterializeResult:
        files = MappingProxyType(dict(self.files))
        return MaterializeResult(
            directory=place.target,
            files=files,
            fingerprint=self.fingerprint,
            etag=self.etag,
            changed=changed,
            unavailable=dict(self.unavailable),
        )


@dataclass(frozen=True, slots=True)
class MaterializeRequest:
    """What is asked for."""

    server: str
    agent: str
    stale_ok: bool = False
    tolerate: Collection[str] = ()
    watch: Watch | None = None

    def knows(self, state: DirectoryState) -> bool:
        """Whether the directory was made for whom this call names, as far as names tell."""
        return state.server == self.server and self.agent in {state.agent, state.agent_id}


@dataclass(frozen=True, slots=True)
class VerifiedListing:
    """A listing that has passed every check."""

    contents: Mapping[str, bytes]
    unavailable: Mapping[str, str]
    etag: str | None
    agent_id: str | None

    def state(self, inputs: MaterializeRequest) -> DirectoryState:
        files = {path: digest(content) for path, content in sorted(self.contents.items())}
        return DirectoryState(
            format=_FORMAT,
            server=inputs.server,
            agent=inputs.agent,
            agent_id=self.agent_id,
            # What is mended on the server need not change the etag: ask for all again.
            etag=None if self.unavailable else self.etag,
            fingerprint=fingerprint_of(files),
            files=files,
            unavailable=dict(self.unavailable),
        )


def fingerprint_of(files: Mapping[str, str]) -> str:
    whole = sha256()
    for path, content in sorted(files.items()):
        whole.update(f"{path}\0{content}\n".encode())
    return whole.hexdigest()


def materialise(
    directory: str | os.PathLike[str], inputs: MaterializeRequest
) -> Steps[MaterializeResult]:
    place = yield from run_blocking(lambda: TargetDirectory.at(directory))
    lock = place.lock()
    try:
        yield from _hold(place, lock)
        yield from run_blocking(place.recover)
        known = yield from run_blocking(lambda: _known(place, inputs))
        try:
            answer = yield from _answer(place, inputs, known)
        except (CarrelError, OSError) as problem:
            return (yield from _fallen_back(place, inputs, known, problem))
        known = known if known is not None and _of_same_agent(answer, known) else None
        try:
            return (yield from _settled(place, inputs, known, answer))
        except (CarrelError, OSError) as problem:
            return (yield from _fallen_back(place, inputs, known, problem))
    finally:
        lock.close()


def _known(place: TargetDirectory, inputs: MaterializeRequest) -> DirectoryState | None:
    """What an earlier call noted, if it was for the same agent by name. Raises NotOurs."""
    noted = place.known()
    if noted is None:
        return None
    state = DirectoryState.parsed(noted)
    if state is None:
        at = os.path.join(place.target, STATE)
        raise NotACarrelDirectory(
            f"{at} was not written by materialising: its directory is left alone"
        )
    return state if inputs.knows(state) else None


def _of_same_agent(answer: httpx.Response, known: DirectoryState) -> bool:
    """Unless the server says that the name is another agent's now."""
    said = answer.headers.get(_AGENT)
    return said is None or said == known.agent_id


def _fallen_back(
    place: TargetDirectory,
    inputs: MaterializeRequest,
    known: DirectoryState | None,
    problem: Exception,
) -> Steps[MaterializeResult]:
    """What is there, where the caller is content with that. Raises the problem."""
    if not inputs.stale_ok or known is None or not (yield from _intact(place, known)):
        raise problem
    if not set(known.unavailable) <= set(inputs.tolerate):
        raise IncompleteWorkspace(known.unavailable) from problem
    return replace(known.result(place, changed=False), stale=True, problem=problem)


def _hold(place: TargetDirectory, lock: DirectoryLock) -> Steps[None]:
    for _ in range(int(PATIENCE / _POLL)):
        if lock.taken():
            return
        yield Sleep(_POLL)
    raise DirectoryLocked(
        f"another has been materialising into {place.target} for {PATIENCE:.0f} s"
    )


def _intact(place: TargetDirectory, state: DirectoryState) -> Steps[bool]:
    return (yield from run_blocking(lambda: is_intact(place.target, state.files)))


def _answer(
    place: TargetDirectory, inputs: MaterializeRequest, known: DirectoryState | None
) -> Steps[httpx.Response]:
    """The listing, or that it is what lies in the directory, untouched (304)."""
    answer = yield from _listing(inputs.agent, known.etag if known else None)
    if answer.status_code == 304 and known is not None:
        same = _of_same_agent(answer, known) and (yield from _intact(place, known))
        return answer if same else (yield from _listing(inputs.agent, None))
    return answer


def _settled(
    place: TargetDirectory,
    inputs: MaterializeRequest,
    known: DirectoryState | None,
    answer: httpx.Response,
) -> Steps[MaterializeResult]:
    if answer.status_code == 304 and known is not None:
        return known.result(place, changed=False)
    served = yield from run_blocking(lambda: checked(answer, inputs.tolerate, place.clash))
    state = yield from run_blocking(lambda: served.state(inputs))
    same = known is not None and known.fingerprint == state.fingerprint
    if same and (yield from _intact(place, state)):
        yield from run_blocking(lambda: place.note(state.encoded()))
    else:
        same = False
        encoded = state.encoded()
        yield from run_blocking(lambda: place.replace(served.contents, encoded, inputs.watch))
    return state.result(place, changed=not same)


def _listing(agent: str, etag: str | None) -> Steps[httpx.Response]:
    headers = {} if etag is None else {"If-None-Match": etag}
    path = api_path("agents", agent, "files")
    return (yield from send_with_retry(HttpRequest("GET", path, {"content": "true"}, headers)))


def checked(answer: httpx.Response, tolerate: Collection[str], clash: Clash) -> VerifiedListing:
    """What was served. Raises Garbled, Incomplete or UnsafePath for what may not be written."""
    if answer.status_code != 200:
        raise InvalidResponse("the answer is no listing", status=answer.status_code)
    rows = _rows(decode_json(answer))
    refuse_unsafe((row["path"] for row in rows), clash)
    contents: dict[str, bytes] = {}
    unavailable: dict[str, str] = {}
    for row in rows:
        if isinstance(row.get("content"), str) and row.get("error") is None:
            contents[row["path"]] = _content(row)
        else:
            unavailable[row["path"]] = str(row.get("error") or "its content is not text")
    if missing := {path: reason for path, reason in unavailable.items() if path not in tolerate}:
        raise IncompleteWorkspace(missing)
    head = answer.headers
    return VerifiedListing(contents, unavailable, head.get("ETag"), head.get(_AGENT))


def _rows(listing: Any) -> list[dict[str, Any]]:
    rows = listing.get("files") if isinstance(listing, dict) else None
    whole = isinstance(rows, list) and all(
        isinstance(row, dict) and isinstance(row.get("path"), str) for row in rows
    )
    if not isinstance(rows, list) or not whole:
        raise InvalidResponse("the answer is no listing of files")
    return rows


def _content(row: Mapping[str, Any]) -> bytes:
    """Exactly what was served. Raises Garbled where it is not what the server says it is."""
    try:
        content: bytes = row["content"].encode()
    except UnicodeEncodeError:
        raise InvalidResponse(f"{row['path']!a}: its content is not valid Unicode") from None
    said = row.get("renderedSha256")
    if said is not None and said != digest(content):
        raise InvalidResponse(f"{row['path']!a}: its content is not what its digest says")
    return content
