"""The desk: everything of one tenant, within reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from carrel.actions.accounts import audit as accounts_audit
from carrel.actions.accounts import tenants
from carrel.actions.events import streams
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs
from carrel.core.access import DEFAULT_WORKSPACE, Actor, Role
from carrel.core.identifiers import Stack, identifier
from carrel.core.store.record import AuditEntry
from carrel.ports import Ports
from carrel.server.python.account_records import Sandboxes, Workspaces
from carrel.server.python.agents import Agents, Templates
from carrel.server.python.approvals import Approvals
from carrel.server.python.caller import CallerContext, Resource
from carrel.server.python.event_feed import EventStream
from carrel.server.python.files import follow
from carrel.server.python.keys import Keys
from carrel.server.python.overlay import AgentWorkspace, Defaults, TemplateFiles
from carrel.server.python.people import People
from carrel.server.python.policy import Policies
from carrel.server.python.runs import Run
from carrel.server.python.secrets import Secrets
from carrel.server.python.tenants import Tenants
from carrel.server.python.webhooks import Webhooks
from carrel.server.python.workspaces import Workspace

_AUTHOR: Final = "in-process"
"""What history says did it: whoever holds the store needs no key."""


class Carrel(Resource):
    """What `carrel.open` gives: the actions of the server, as the tenant's owner."""

    def __init__(self, seat: CallerContext) -> None:
        super().__init__(seat)
        self.agents = Agents(seat)
        self.templates = Templates(seat)
        self.people = People(seat)
        self.keys = Keys(seat)
        self.secrets = Secrets(seat)
        self.policy = Policies(seat)
        self.webhooks = Webhooks(seat)
        self.approvals = Approvals(seat)
        self.tenants = Tenants(seat)
        self.sandboxes = Sandboxes(seat)
        self.workspaces = Workspaces(seat)

    @classmethod
    async def of(cls, ports: Ports, slug: str) -> Carrel:
        """The desk of a tenant. Raises Missing."""
        return cls(CallerContext(ports, await _owner(ports, slug)))

    async def tenant(self, slug: str) -> Carrel:
        """The desk of another tenant of the same store, open for as long as this one."""
        actor = await _owner(self._ports, slug)
        return Carrel(replace(self._seat, actor=actor))

    def workspace(self, name: str = DEFAULT_WORKSPACE) -> Workspace:
        """One of the tenant's workspaces; it is there as soon as something is in it.

        One of a name that begins with ``ws_`` is there once it was described: see `workspaces`.
        """
        actor = replace(self._actor, workspace=identifier(name))

        async def stack() -> Stack:
            return await stacks.default_stack(self._ports, actor)

        return Workspace(replace(self._seat, actor=actor), stack)

    def agent(self, name: str) -> AgentWorkspace:
        """An agent's workspace, by id or slug: its own files over its template's and defaults."""

        async def stack() -> Stack:
            return await stacks.agent_stack(self._ports, self._actor, name)

        return AgentWorkspace(self._seat, stack, name)

    def template(self, name: str) -> TemplateFiles:
        """A template's own files, by id or slug."""

        async def stack() -> Stack:
            return await stacks.template_stack(self._ports, self._actor, name)

        return TemplateFiles(self._seat, stack, name)

    @property
    def defaults(self) -> Defaults:
        """The files beneath all agents of the tenant."""

        async def stack() -> Stack:
            return await stacks.defaults_stack(self._ports, self._actor)

        return Defaults(self._seat, stack)

    async def run(self, id: str) -> Run:
        return Run(self._seat, await runs.get(self._ports, self._actor, id))

    async def runs(self, *, before: str = "", limit: int = 100) -> tuple[Run, ...]:
        """Newest first, of all workspaces; ``before`` is the id of the last one seen."""
        page = await runs.page(self._ports, self._actor, cursor=before, limit=limit)
        return tuple(Run(self._seat, run) for run in page.items)

    def events(self, since: str | None = None, *, types: Iterable[str] = ()) -> EventStream:
        """All that happens in the tenant, from now on or after an event's cursor."""
        wanted = frozenset(types)

        async def listen() -> tuple[str, streams.Batches]:
            return await streams.listen_to_tenant(self._ports, self._actor, wanted, since)

        return follow(self._seat, listen)

    async def audit(self, *, before: int = 0, limit: int = 100) -> tuple[AuditEntry, ...]:
        """Who changed which records, newest first."""
        page = await accounts_audit.listing(self._ports, self._actor, before=before, limit=limit)
        return page.items

    async def close(self) -> None:
        """End whatever still listens; `carrel.open` does it when its block is left."""
        for feed in list(self._seat.feeds):
            await feed.aclose()


async def _owner(ports: Ports, slug: str) -> Actor:
    owner = await tenants.first_owner(ports, slug)
    return Actor(owner.tenant, _AUTHOR, role=Role.OWNER, person=owner.id)
