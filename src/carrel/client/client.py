"""The two clients: what one can ask of a server, waiting for it or awaiting it."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Collection
from typing import Any, Final, Self

from carrel.client.account_records import AccountRecords
from carrel.client.agent_workspace import Workspace
from carrel.client.approvals import Approvals
from carrel.client.atomic_directory import Watch
from carrel.client.drivers import AsyncDriver, Driver, Resource, Steps, SyncDriver, operation
from carrel.client.errors import Malformed
from carrel.client.events import Event, follow
from carrel.client.files import Files
from carrel.client.httpx_import import httpx, tls_verify
from carrel.client.limits import ClientLimits
from carrel.client.materialize import MaterializeRequest, MaterializeResult, materialise
from carrel.client.pins import TemplateFiles
from carrel.client.records import People, Records
from carrel.client.runs import Run, get_run, list_runs, start_run

TIMEOUT: Final = 30.0
"""Seconds that a server may let one wait, for a connection or for the next bytes of an answer."""
DEADLINE: Final = 300.0
"""Seconds until an answer has to be there as a whole, tries and pauses included."""
MOST: Final = 2**30
"""Bytes of an answer: far more than a workspace holds that anybody would read."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")


class ApiClient(Resource[Driver]):
    """Everything that a credential reaches on one server."""

    def __init__(self, driver: Driver, server: str) -> None:
        super().__init__(driver)
        self._server = server
        self.people = People(driver)
        self.agents = Records(driver, "agents")
        self.templates = Records(driver, "templates")
        self.sandboxes = AccountRecords(driver, "sandboxes")
        self.workspaces = AccountRecords(driver, "workspaces")
        self.approvals = Approvals(driver)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._server}>"

    def agent(self, name: str) -> Workspace[Driver]:
        """An agent's workspace, by id or slug. Nothing is asked for yet."""
        return Workspace(self._driver, self._server, name)

    def template(self, name: str) -> TemplateFiles[Driver]:
        """A template's own files, by id or slug."""
        return TemplateFiles(self._driver, name)

    def workspace(self, name: str) -> Files[Driver]:
        """The files that are shared as a workspace."""
        return Files(self._driver, "workspaces", name)

    @property
    def defaults(self) -> Files[Driver]:
        """The files beneath all agents of the tenant."""
        return Files(self._driver, "defaults")

    @operation
    def materialise(
        self,
        agent: str,
        directory: str | os.PathLike[str],
        *,
        stale_ok: bool = False,
        tolerate: Collection[str] = (),
        watch: Watch | None = None,
    ) -> Steps[MaterializeResult]:
        """As Workspace.materialise, for the agent of this name."""
        inputs = MaterializeRequest(self._server, agent, stale_ok, frozenset(tolerate), watch)
        return (yield from materialise(directory, inputs))

    @operation
    def run(self, id: str) -> Steps[Run[Driver]]:
        return (yield from get_run(self._driver, id))

    @operation
    def runs(
        self, *, agent: str | None = None, before: str = "", limit: int = 100
    ) -> Steps[tuple[Run[Driver], ...]]:
        """Newest first, of all workspaces or an agent's; ``before`` is the last one's id."""
        return (yield from list_runs(self._driver, agent, before, limit))

    @operation
    def start_run(
        self,
        workflow: str = "",
        *,
        agent: str | None = None,
        mode: str | None = None,
        parent: str | None = None,
        share_snapshot: bool = False,
        replay_of: str | None = None,
    ) -> Steps[Run[Driver]]:
        """Freeze the caller's workspace, or an agent's, or what another run saw, for a run."""
        asked = {"workflowId": workflow, "agentId": agent, "scope": mode}
        asked |= {"parentRunId": parent, "replayOf": replay_of}
        return (yield from start_run(self._driver, {**asked, "shareSnapshot": share_snapshot}))


class Client(ApiClient[SyncDriver]):
    """A server's client for programs that wait."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        max_answer_bytes: int = MOST,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        server, how = _how(url, token)
        bounds = ClientLimits(timeout, deadline, max_answer_bytes)
        self._http = httpx.Client(**how, transport=transport)
        super().__init__(SyncDriver(self._http, bounds), server)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


class AsyncClient(ApiClient[AsyncDriver]):
    """The same for programs with an event loop, which is never held up."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        max_answer_bytes: int = MOST,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        server, how = _how(url, token)
        bounds = ClientLimits(timeout, deadline, max_answer_bytes)
        self._http = httpx.AsyncClient(**how, transport=transport)
        super().__init__(AsyncDriver(self._http, bounds), server)

    def events(
        self, *, types: Collection[str] = (), since: str | None = None, own: bool = False
    ) -> AsyncGenerator[Event, None]:
        """What happens in the tenant, or in the ``own`` workspace of a credential confined to one.

        It never ends by itself. The first that comes, and the first after every interruption, is a
        CONNECTED. Raises Refused.
        """
        if own:
            return follow(self._http, "/v1/host/workspace/events", (), since)
        return follow(self._http, "/v1/events", types, since)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.aclose()


def _how(url: str, token: str) -> tuple[str, dict[str, Any]]:
    """The server's address as one may show it, and the arguments of httpx's clients."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise Malformed(f"{url!r} is not the URL of a server") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host or (parsed.port or 1) > 65535:
        raise Malformed(f"{str(parsed)!r} is not the URL of a server: http://… or https://…")
    if not _TOKEN.fullmatch(token):
        raise Malformed("a token is needed, of visible ASCII characters")
    shown = str(parsed.copy_with(userinfo=b"", query=None, fragment=None)).rstrip("/")
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "carrel-client"}
    headers |= {"Accept-Encoding": "gzip"}
    return shown, {"base_url": parsed, "headers": headers, "verify": tls_verify(shown)}
