"""Helpers of the client's tests: an agent to edit, a directory to read, a faulty network."""

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
class AgentEditor:
    """Changes an agent and its template without the client under test."""

    http: httpx.Client
    agent: str
    template: str

    @classmethod
    def of_new_agent(cls, http: httpx.Client, name: str = "Ada") -> AgentEditor:
        slug = "a" + secrets.token_hex(6)
        json_of(http.post("/v1/templates", json={"slug": slug, "name": "T"}))
        body = {"slug": slug, "name": name, "templateId": slug}
        json_of(http.post("/v1/agents", json=body))
        return cls(http, slug, slug)

    def url(self, path: str, of: str = "agents") -> str:
        return f"/v1/{of}/{self.agent}/files/{quote(path, safe='')}"

    def put(self, path: str, content: str, of: str = "agents") -> None:
        json_of(self.http.put(self.url(path, of), json={"content": content}))

    def delete(self, path: str) -> None:
        assert self.http.delete(self.url(path)).status_code == 204

    def rename(self, name: str) -> None:
        json_of(self.http.patch(f"/v1/agents/{self.agent}", json={"name": name}))

    def served(self) -> dict[str, bytes]:
        """The files that a directory must hold."""
        rows = json_of(self.http.get(f"/v1/agents/{self.agent}/files?content=true"))["files"]
        return {row["path"]: row["content"].encode() for row in rows}


def json_of(response: httpx.Response) -> Any:
    """The JSON of a response that must be a success."""
    assert response.status_code in {200, 201}, response.text
    return response.json()


def read_directory(directory: File) -> dict[str, bytes]:
    """The files of a directory by path, without the state file; empty directories end in /."""
    files: dict[str, bytes] = {}
    for parent, directories, names in os.walk(directory):
        here = File(parent)
        for name in names:
            files[(here / name).relative_to(directory).as_posix()] = (here / name).read_bytes()
        if not names and not directories and here != directory:
            files[here.relative_to(directory).as_posix() + "/"] = b""
    if directory.exists():
        files.pop(STATE)
    return files


def stat_directory(directory: File) -> dict[str, tuple[int, int, int]]:
    """Inode, time and mode of every path: they differ after any write."""
    return {
        str(path): (info.st_ino, info.st_mtime_ns, info.st_mode)
        for path in [directory, *directory.rglob("*")]
        for info in [path.lstat()]
    }


@dataclass
class FaultyTransport(httpx.HTTPTransport):
    """A network that loses requests and responses, and records both."""

    requests: list[httpx.Request] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)
    lose_requests: int = 0
    lose_answers: int = 0
    cut: bool = False

    def __post_init__(self) -> None:
        httpx.HTTPTransport.__init__(self)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.cut or self.lose_requests > 0:
            self.lose_requests -= 1
            raise httpx.ConnectError("no connection")
        response = super().handle_request(request)
        if self.lose_answers > 0:
            self.lose_answers -= 1
            response.read()
            raise httpx.ReadError("connection closed before the response")
        self.answers.append(response)
        return response

    @property
    def statuses(self) -> list[int]:
        return [response.status_code for response in self.answers]


@contextmanager
def client_over(transport: FaultyTransport, url: str) -> Iterator[Client]:
    with Client(url, TOKEN, transport=transport) as client:
        yield client
