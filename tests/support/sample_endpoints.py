"""A small API over a temporary store that uses every feature of the request pipeline."""

from __future__ import annotations

import asyncio
import re
import shutil
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path as File
from tempfile import mkdtemp
from typing import Annotated, Any

import httpx
import msgspec
from tests.support.services import files
from tests.support.stores import ports_over

from carrel.adapters.sqlite import SqliteStore, open_store
from carrel.adapters.system_clock import SystemClock
from carrel.core.access import MEMBER_PERMISSIONS, Actor, Permission
from carrel.core.errors import Busy, NotFound, Unauthenticated, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.overlay import planned_writes
from carrel.core.overlay.write_condition import parse_condition
from carrel.core.store.commit import Applied, Commit
from carrel.ports import CorruptContent, Ports
from carrel.server.http.app import HttpApp, create_app
from carrel.server.http.endpoint import (
    IF_ABSENT,
    IF_MATCH,
    Endpoint,
    Headers,
    Request,
    RequestModel,
    Response,
    ResponseModel,
    endpoint,
)
from carrel.server.http.metrics import Metrics
from carrel.server.http.response import EVENT_STREAM
from carrel.server.http.sse_transport import encode_event

ADA = Actor("acme", "ada")
BOB = Actor("acme", "bob", MEMBER_PERMISSIONS, workspace="lab")
READER = Actor("acme", "reader", frozenset({Permission.WORKSPACE_READ}))
ROOT = Actor("", "root", frozenset(), platform=True)
TOKENS = {b"ada": ADA, b"bob": BOB, b"reader": READER, b"root": ROOT}


NAMED = r"[A-Za-z0-9][A-Za-z0-9.-]{0,60}(/[A-Za-z0-9][A-Za-z0-9.-]{0,60}){0,9}"
PATH = {"path": Annotated[str, msgspec.Meta(pattern=f"^{NAMED}$")]}


class MovableClock(SystemClock):
    """The system clock plus an offset set by tests."""

    ahead = 0

    def now(self) -> int:
        return super().now() + self.ahead


class Note(RequestModel, frozen=True):
    text: str
    line_count: Annotated[int, msgspec.Meta(ge=0, le=9)] = 1
    extra: Any = None


class NoteRow(ResponseModel, frozen=True):
    path: str
    version: int
    etag: str


class Look(RequestModel, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10
    raw: bool = False
    word: str | None = None
    at: float | None = None


class Many(RequestModel, frozen=True):
    word: tuple[str, ...] = ()


@endpoint("GET", "/alive", public=True, responses={200: dict[str, bool]})
async def alive(call: Request) -> Response:
    """Return a constant."""
    return Response.json({"alive": True})


@endpoint("GET", "/v1/echo/{name}", query=Look, responses={200: dict[str, Any]}, tag="Echo")
async def echo(call: Request[None, Look]) -> Response:
    """Return the parts of the request.

    And nothing else.
    """
    parts = {"params": call.params, "query": call.query, "word": call.header(b"x-word")}
    return Response.json(parts, headers={"ETag": '"e"'})


@endpoint("GET", "/v1/loose", allow_unknown_query=True, query=Look, responses={200: dict[str, Any]})
async def loose(call: Request[None, Look]) -> Response:
    return Response.json({"limit": call.query.limit, "tenant": call.actor.tenant})


@endpoint("GET", "/v1/many", query=Many, responses={200: list[str]})
async def many(call: Request[None, Many]) -> Response:
    return Response.json(call.query.word)


async def again(call: Request[Note], versions: tuple[int, ...]) -> Response:
    row = NoteRow(path=call.params["path"], version=versions[0], etag=f'"v{versions[0]}"')
    return Response.json(row, headers={"ETag": row.etag})


@endpoint(
    "PUT",
    "/v1/notes/{path...}",
    permission=Permission.WORKSPACE_WRITE,
    params=PATH,
    body=Note,
    responses={200: NoteRow},
    refusals=(ValidationError, WorkspaceConflict, Busy),
    headers=(IF_MATCH, IF_ABSENT),
    response_headers=("ETag",),
    tag="Notes",
    idempotent=True,
    rebuild=again,
)
async def put(call: Request[Note]) -> Response:
    """Store a note."""
    if not re.fullmatch(NAMED, call.params["path"]):
        raise ValidationError("this is no path of a note")
    ports, path, scope = call.ports, Path(call.params["path"]), call.actor.scope
    condition = parse_condition(call.header(b"if-match"), call.header(b"if-none-match"))
    layers = await ports.trees.read([scope], [path])
    [blob] = await ports.blobs.put([call.body.text.encode()])
    decided = planned_writes.plan_put(layers, path, blob, condition)
    now = ports.clock.now()
    change = (decided.write,)
    commit = Commit(
        change, call.actor.name, "put", now, decided.expects, idempotency_key=call.idempotency_key
    )
    [outcome] = await ports.trees.commit([commit])
    if not isinstance(outcome, Applied):
        raise Busy("others wrote it meanwhile")
    return await again(call, (outcome.heads[0].version,))


@endpoint(
    "GET",
    "/v1/notes/{path...}",
    permission=Permission.WORKSPACE_READ,
    params=PATH,
    responses={200: NoteRow},
    refusals=(NotFound,),
    tag="Notes",
)
async def get(call: Request) -> Response:
    """Read a note."""
    path = Path(call.params["path"])
    [tree] = await call.ports.trees.read([call.actor.scope], [path])
    if path not in tree.heads:
        raise NotFound(f"there is no {path}")
    return await again(call, (tree.heads[path].version,))


@endpoint("GET", "/v1/notes/{path...}/history", responses={200: dict[str, str]}, tag="Notes")
async def history(call: Request) -> Response:
    return Response.json({"history of": call.params["path"]})


@endpoint("POST", "/v1/tenants", platform=True, responses={201: dict[str, bool]})
async def created_elsewhere(call: Request) -> Response:
    return Response.json({"founded": True}, 201)


@endpoint("POST", "/v1/bytes", body=bytes, max_body=100_000, responses={200: dict[str, int]})
async def take(call: Request[bytes]) -> Response:
    return Response.json({"size": len(call.body)})


class Options(RequestModel, frozen=True):
    dry_run: bool = False


@endpoint("POST", "/v1/options", body=Options, responses={200: Options})
async def options(call: Request[Options]) -> Response:
    return Response.json(call.body)


@endpoint("GET", "/v1/broken", responses={200: None})
async def broken(call: Request) -> Response:
    raise KeyError("the secret content of a file")


@endpoint("GET", "/v1/corrupt", responses={200: None})
async def corrupt(call: Request) -> Response:
    raise CorruptContent("blob sha256:00ff is gone")


@endpoint(
    "GET",
    "/v1/ticks/{count}",
    params={"count": Annotated[int, msgspec.Meta(ge=0, le=9)]},
    responses={200: EVENT_STREAM},
    refusals=(NotFound,),
    tag="Ticks",
)
async def ticks(call: Request) -> Response:
    count = call.params["count"]
    if not re.fullmatch("[0-9]", count):
        raise NotFound("there are 0 to 9 ticks")

    async def source() -> AsyncIterator[bytes]:
        for number in range(int(count)):
            yield encode_event({"n": number}, id=str(number), type="tick")

    return Response.stream(source())


SAMPLE_ENDPOINTS = (
    alive,
    echo,
    loose,
    many,
    put,
    get,
    history,
    created_elsewhere,
    take,
    options,
    broken,
    corrupt,
    ticks,
)


async def authenticate(headers: Headers) -> Actor:
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if kind != b"Bearer" or token not in TOKENS:
        raise Unauthenticated("a credential is needed")
    return TOKENS[token]


class LazyStore:
    """SQLite store that opens in an event loop when one of its ports is first called there.

    The toy app is made before its event loop runs, and most requests to it reach no store. The
    loop closes the store at its end, with all asynchronous generators that are still open.
    """

    def __init__(self) -> None:
        directory = mkdtemp(prefix="carrel-")
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        self._file = files.fresh(File(directory) / "carrel.db")
        self._opened: dict[asyncio.AbstractEventLoop, asyncio.Task[SqliteStore]] = {}
        self._generators: list[AsyncGenerator[SqliteStore, None]] = []
        """Kept here, since the garbage collector would close them."""

    def __getattr__(self, name: str) -> Any:
        return LazyPort(self, name)

    async def open(self) -> SqliteStore:
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            generator = self._open()
            self._generators.append(generator)
            self._opened[loop] = loop.create_task(_first(generator))
        return await self._opened[loop]

    async def _open(self) -> AsyncGenerator[SqliteStore, None]:
        # A loop that ends with the interpreter has no threads left to close the store in.
        with suppress(RuntimeError):
            async with open_store(self._file) as store:
                yield store


async def _first(generator: AsyncGenerator[SqliteStore, None]) -> SqliteStore:
    return await anext(generator)


@dataclass(frozen=True)
class LazyPort:
    """One port of a LazyStore; all its attributes are coroutine functions."""

    store: LazyStore
    port: str

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **more: Any) -> Any:
            return await getattr(getattr(await self.store.open(), self.port), name)(*args, **more)

        return call


def sample_ports(clock: SystemClock | None = None) -> Ports:
    """Ports over a temporary store, which may be created outside an event loop."""
    return ports_over(LazyStore(), clock or SystemClock())


def sample_app(
    *more: Endpoint,
    ports: Ports | None = None,
    closing: asyncio.Event | None = None,
    **options: Any,
) -> HttpApp:
    """The sample endpoints; additional ones replace those of the same name."""
    options.setdefault("metrics", Metrics())
    retained = [toy for toy in SAMPLE_ENDPOINTS if toy.name not in {other.name for other in more}]
    return create_app(
        ports or sample_ports(), [*retained, *more], authenticate, closing=closing, **options
    )


@asynccontextmanager
async def client(
    app: HttpApp | None = None, token: str = "ada"
) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app or sample_app())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://carrel", headers=headers
    ) as http:
        yield http


async def send_raw(
    app: HttpApp, raw_path: bytes, method: str = "GET", headers: Sequence[tuple[bytes, bytes]] = ()
) -> list[dict[str, Any]]:
    """The messages that the app sends for a request that no client library would send."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": raw_path.decode("latin-1"),
        "raw_path": raw_path,
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer ada"), *headers],
    }
    await app(scope, receive, send)
    return sent
