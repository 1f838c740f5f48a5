"""What tests of the client have in common: an agent to work on, and a look at a directory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any
from urllib.parse import quote

import httpx
from tests.support.server_process import TOKEN

from carrel_client import Client

STATE = ".carrel-workspace.json"


@dataclass(frozen=True)
class Hands:
    """Whoever changes an agent and its template behind the client's back."""

    http: httpx.Client
    agent: str
    template: str

    @classmethod
    def of_new_agent(cls, http: httpx.Client, name: str = "Ada") -> Hands:
        slug = "a" + secrets.token_hex(6)
        made(http.post("/v1/templates", json={"slug": slug, "name": "T"}))
        body = {"slug": slug, "name": name, "templateId": slug}
        made(http.post("/v1/agents", json=body))
        return cls(http, slug, slug)

    def url(self, path: str, of: str = "agents") -> str:
        return f"/v1/{of}/{self.agent}/files/{quote(path, safe='')}"

    def put(self, path: str, content: str, of: str = "agents") -> None:
        made(self.http.put(self.url(path, of), json={"content": content}))

    def delete(self, path: str) -> None:
        assert self.http.delete(self.url(path)).status_code == 204

    def rename(self, name: str) -> None:
        made(self.http.patch(f"/v1/agents/{self.agent}", json={"name": name}))

    def served(self) -> dict[str, bytes]:
        """What a directory must hold."""
        rows = made(self.http.get(f"/v1/agents/{self.agent}/files?content=true"))["files"]
        return {row["path"]: row["content"].encode() for row in rows}


def made(answer: httpx.Response) -> Any:
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def held(directory: File) -> dict[str, bytes]:
    """All files of a directory but the one that we keep; directories that are empty show too."""
    found: dict[str, bytes] = {}
    for at, directories, files in os.walk(directory):
        here = File(at)
        for name in files:
            found[(here / name).relative_to(directory).as_posix()] = (here / name).read_bytes()
        if not files and not directories and here != directory:
            found[here.relative_to(directory).as_posix() + "/"] = b""
    if directory.exists():
        found.pop(STATE)
    return found


def look(directory: File) -> dict[str, tuple[int, int, int]]:
    """Everything that would show that something was written."""
    return {
        str(path): (info.st_ino, info.st_mtime_ns, info.st_mode)
        for path in [directory, *directory.rglob("*")]
        for info in [path.lstat()]
    }


@dataclass
class Wire(httpx.HTTPTransport):
    """The network, as bad as a test wants it, and what went over it."""

    seen: list[httpx.Request] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)
    lose_requests: int = 0
    lose_answers: int = 0
    cut: bool = False

    def __post_init__(self) -> None:
        httpx.HTTPTransport.__init__(self)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        if self.cut or self.lose_requests > 0:
            self.lose_requests -= 1
            raise httpx.ConnectError("nobody there")
        answer = super().handle_request(request)
        if self.lose_answers > 0:
            self.lose_answers -= 1
            answer.read()
            raise httpx.ReadError("gone before it had answered")
        self.answers.append(answer)
        return answer

    @property
    def statuses(self) -> list[int]:
        return [answer.status_code for answer in self.answers]


@contextmanager
def over(wire: Wire, url: str) -> Iterator[Client]:
    with Client(url, TOKEN, transport=wire) as client:
        yield client
