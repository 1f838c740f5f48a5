"""The clients: everything that a credential reaches on one server."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carrel_client.account_records import Sandboxes, WorkspaceRecords
from carrel_client.accounts import Audit, Keys, People, Secrets, Tenants
from carrel_client.agents import Agents, Templates
from carrel_client.approvals import Approvals
from carrel_client.comparison import Comparison, compare, comparison_query
from carrel_client.drivers import AsyncDriver, Driver, Resource, Steps, SyncDriver, operation
from carrel_client.dry_runs import DryRun, dry_run
from carrel_client.errors import ValidationError
from carrel_client.event_iterators import close_streams, event_stream
from carrel_client.event_reader import EventReader, EventSource
from carrel_client.local_directory.atomic_directory import ProgressCallback
from carrel_client.local_directory.materialize import (
    MaterializeRequest,
    MaterializeResult,
    materialize,
)
from carrel_client.overview import Overview, get_overview
from carrel_client.pins import DefaultFiles, TemplateFiles
from carrel_client.policy import PolicyResource
from carrel_client.purge import purge_text
from carrel_client.requests import api_path
from carrel_client.reviews import Reviews
from carrel_client.runs import Run, get_run, list_runs, start_run
from carrel_client.search import (
    Inbox,
    PendingDream,
    PendingPin,
    SearchResult,
    get_inbox,
    list_inbox_dreams,
    list_inbox_pins,
    search,
)
from carrel_client.webhooks import Webhooks
from carrel_client.workspaces import AgentWorkspace, Workspace

if TYPE_CHECKING:
    from carrel_client.httpx_import import httpx

TIMEOUT_SECONDS: Final = 30.0
"""For a connection, and for the next bytes of a response."""
DEADLINE_SECONDS: Final = 300.0
"""For a complete response, with all retries and pauses."""
MAX_RESPONSE_BYTES: Final = 2**30
DEFAULT_WORKSPACE: Final = "default"

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
SyncSelf = TypeVar("SyncSelf", bound="Client")
AsyncSelf = TypeVar("AsyncSelf", bound="AsyncClient")


class ApiClient(Resource[Driver]):
    """Everything that a credential reaches, over any driver."""

    def __init__(self, driver: Driver, server: str) -> None:
        super().__init__(driver)
        self._server = server
        self.tenants = Tenants(driver)
        self.people = People(driver)
        self.keys = Keys(driver)
        self.secrets = Secrets(driver)
        self.policy = PolicyResource(driver)
        self.audit = Audit(driver)
        self.reviews = Reviews(driver)
        self.webhooks = Webhooks(driver)
        self.agents = Agents(driver)
        self.templates = Templates(driver)
        self.sandboxes = Sandboxes(driver)
        self.workspaces = WorkspaceRecords(driver)
        self.approvals = Approvals(driver)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._server}>"

    def agent(self, name: str) -> AgentWorkspace[Driver]:
        """An agent's workspace, by id or slug. Sends no request."""
        return AgentWorkspace(self._driver, self._server, name)

    def template(self, name: str) -> TemplateFiles[Driver]:
        """A template's own files, by id or slug."""
        return TemplateFiles(self._driver, name)

    def workspace(self, name: str = DEFAULT_WORKSPACE) -> Workspace[Driver]:
        """A workspace of the tenant; it exists as soon as a file is in it.

        One whose name begins with ``ws_`` exists once it was created: see ``workspaces``.
        """
        return Workspace(self._driver, name)

    @property
    def defaults(self) -> DefaultFiles[Driver]:
        """The files below all agents of the tenant."""
        return DefaultFiles(self._driver)

    @operation
    def materialize(
        self,
        agent: str,
        directory: str | os.PathLike[str],
        *,
        stale_ok: bool = False,
        tolerate: Collection[str] = (),
        progress: ProgressCallback | None = None,
    ) -> Steps[MaterializeResult]:
        """As AgentWorkspace.materialize, for the agent of this name."""
        request = MaterializeRequest(self._server, agent, stale_ok, frozenset(tolerate), progress)
        return (yield from materialize(directory, request))

    @operation
    def run(self, run_id: str) -> Steps[Run[Driver]]:
        """Raises NotFound."""
        return (yield from get_run(self._driver, run_id))

    @operation
    def runs(  # noqa: PLR0913 - filters, by name
        self,
        *,
        agent_id: str | None = None,
        workspace_id: str | None = None,
        session_id: str | None = None,
        status: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        before: str = "",
        limit: int = 100,
    ) -> Steps[tuple[Run[Driver], ...]]:
        """A page of runs, newest first; ``before`` is the id of the last one seen.

        ``session_id`` names a session of the agent ``agent_id``.
        """
        filters = {"agentId": agent_id, "workspaceId": workspace_id, "sessionId": session_id}
        filters |= {"status": status, "from": start.isoformat() if start else None}
        filters |= {"to": end.isoformat() if end else None}
        return (yield from list_runs(self._driver, before, limit, **filters))

    @operation
    def start_run(  # noqa: PLR0913 - the fields of a run, by name
        self,
        workflow_id: str = "",
        *,
        agent_id: str | None = None,
        workspace_id: str | None = None,
        scope: str | None = None,
        parent_run_id: str | None = None,
        share_snapshot: bool = False,
        replay_of: str | None = None,
        session_id: str | None = None,
        include: Collection[str] = (),
        dialect: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Run[Driver]]:
        """Freeze a workspace for a run: the caller's, an agent's or another run's.

        ``include`` names what to return in ``run.parts``: ``files``, ``prompt`` and ``tools``, the
        last in a ``dialect``: ``mcp``, ``openai`` or ``anthropic``. Parts whose ETag is in
        ``if_none_match`` are omitted.
        """
        fields = {
            "workflowId": workflow_id,
            "agentId": agent_id,
            "workspaceId": workspace_id,
            "scope": scope,
            "parentRunId": parent_run_id,
            "shareSnapshot": share_snapshot,
            "replayOf": replay_of,
            "sessionId": session_id,
            "include": list(include),
            "dialect": dialect,
        }
        return (yield from start_run(self._driver, fields, idempotency_key, if_none_match))

    @operation
    def search(
        self,
        query: str,
        *,
        kinds: Collection[str] = (),
        limit: int = 20,
        scope: str | None = None,
    ) -> Steps[SearchResult]:
        """Find files, memories and sessions by words, or how they begin, best first.

        With `scope="shared"`: only files that a shared session may see.
        """
        return (yield from search(query, kinds, limit, scope))

    @operation
    def compare(  # noqa: PLR0913 - the filters of a listing
        self,
        left: str,
        right: str,
        *,
        prefix: str = "",
        statuses: Collection[str] = (),
        raw: bool = False,
        diff: bool = False,
        cursor: str = "",
        limit: int = 100,
    ) -> Steps[Comparison]:
        """Compare the files of two agents, layers, runs or versions; a page of paths.

        A side is ``agent:NAME``, ``template:NAME``, ``workspace:ID``, ``defaults`` or ``run:ID``;
        then ``/PATH`` for one file; then ``@TIME``, or ``@vN`` for a version of the file.
        """
        query = comparison_query(left, right, statuses, raw=raw, diff=diff)
        query |= {"prefix": prefix, "cursor": cursor, "limit": str(limit)}
        return (yield from compare(query))

    @operation
    def purge(
        self,
        text: str,
        *,
        dry_run: bool = False,
        on_progress: ProgressCallback | None = None,
    ) -> Steps[Mapping[str, int]]:
        """Remove a text from everything that the tenant stores; return changes by kind.

        Takes several requests. If interrupted, call it again. Only owners may.
        """
        return (yield from purge_text(text, dry_run, on_progress))

    @operation
    def overview(self, *, days: int = 30, mine: bool = False) -> Steps[Overview]:
        """Counts of what waits, runs, drift, overrides, prompts and memories."""
        return (yield from get_overview(days, mine))

    @operation
    def inbox(self, *, mine: bool = False) -> Steps[Inbox]:
        """Groups and counts of pins, approvals and dreams that wait for people."""
        return (yield from get_inbox(mine))

    @operation
    def inbox_pins(
        self,
        *,
        path: str | None = None,
        offered_by: str | None = None,
        overridden: bool = False,
        mine: bool = False,
    ) -> Steps[tuple[PendingPin, ...]]:
        """Agents for which an update of a pinned file waits.

        ``offered_by`` is a template, by id or slug, or ``defaults``. With ``overridden`` only
        agents whose own override an accept would drop.
        """
        return (yield from list_inbox_pins(path, offered_by, overridden, mine))

    @operation
    def inbox_dreams(self, *, mine: bool = False) -> Steps[tuple[PendingDream, ...]]:
        """Dreams that wait for a review, oldest first."""
        return (yield from list_inbox_dreams(mine))

    @operation
    def dry_run(self, requests: Sequence[Mapping[str, Any]], *, state: str = "") -> Steps[DryRun]:
        """Answer requests as if they were made, in order; nothing is stored.

        Each is a mapping with ``method``, ``path`` and, if needed, ``query``, ``headers`` and
        ``body``. With the ``state`` of an earlier dry run they follow its requests.
        """
        return (yield from dry_run(requests, state))

    @event_stream
    def events(
        self,
        *,
        types: Collection[str] = (),
        since: str | None = None,
        own_workspace: bool = False,
        include_connected: bool = False,
    ) -> EventReader:
        """Stream events of the tenant, from now on or after the cursor ``since``.

        ``since="0"`` starts at the beginning. A credential that is bound to a workspace or an agent
        reads ``own_workspace`` only. With ``include_connected`` every connection adds an event of
        type CONNECTED. Raises Refusal.
        """
        source = _event_source(types, own_workspace)
        return EventReader(source, since, include_connected=include_connected)


def _event_source(types: Collection[str], own_workspace: bool) -> Steps[EventSource]:
    yield from ()
    if own_workspace:
        return EventSource(api_path("host", "workspace", "events"))
    query = {"types": ",".join(sorted(types))} if types else {}
    return EventSource(api_path("events"), query)


class Client(ApiClient[SyncDriver]):
    """The client for programs that block."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        deadline: float = DEADLINE_SECONDS,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        # Imported here, since in process there is no HTTP.
        from carrel_client import httpx_drivers, limits  # noqa: PLC0415
        from carrel_client.httpx_import import httpx  # noqa: PLC0415

        server, options = _http_options(url, token)
        bounds = limits.ClientLimits(timeout, deadline, max_response_bytes)
        http = httpx.Client(**options, transport=transport)
        super().__init__(httpx_drivers.HttpxDriver(http, bounds), server)

    def close(self) -> None:
        self._driver.close()

    def __enter__(self: SyncSelf) -> SyncSelf:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(ApiClient[AsyncDriver]):
    """The client for programs with an event loop."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        deadline: float = DEADLINE_SECONDS,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        # Imported here, since in process there is no HTTP.
        from carrel_client import httpx_drivers, limits  # noqa: PLC0415
        from carrel_client.httpx_import import httpx  # noqa: PLC0415

        server, options = _http_options(url, token)
        bounds = limits.ClientLimits(timeout, deadline, max_response_bytes)
        http = httpx.AsyncClient(**options, transport=transport)
        super().__init__(httpx_drivers.AsyncHttpxDriver(http, bounds), server)

    @classmethod
    def over(cls: type[AsyncSelf], driver: AsyncDriver, server: str) -> AsyncSelf:
        """A client over another driver. ``server`` names it in messages and directories."""
        client = cls.__new__(cls)
        ApiClient.__init__(client, driver, server)
        return client

    async def aclose(self) -> None:
        """End open event streams, and release the driver."""
        await close_streams(self._driver)
        await self._driver.aclose()

    async def __aenter__(self: AsyncSelf) -> AsyncSelf:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _http_options(url: str, token: str) -> tuple[str, dict[str, Any]]:
    """The server's address without credentials, and the options of httpx's clients."""
    from carrel_client.httpx_import import httpx, tls_verify  # noqa: PLC0415

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise ValidationError(f"{url!r} is not the URL of a server") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host or (parsed.port or 1) > 65535:
        raise ValidationError(f"{str(parsed)!r} is not the URL of a server: http://… or https://…")
    if not _TOKEN.fullmatch(token):
        raise ValidationError("the token must be a non-empty string of visible ASCII characters")
    server = str(parsed.copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/")
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "carrel-client"}
    headers |= {"Accept-Encoding": "gzip"}
    return server, {"base_url": parsed, "headers": headers, "verify": tls_verify(server)}
