"""Endpoints of record collections, declared from one description.

For example::

    _THINGS = RecordCollection("things", "/v1/things", "Things", ThingModel,
                               each_record(thing_to_model), things.get)
    ENDPOINTS = (
        _THINGS.list("List things.", things.list_things, ThingPageModel),
        _THINGS.get("Get a thing."),
        _THINGS.delete("Delete a thing.", things.delete, (NotFound, Busy)),
    )
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from msgspec import structs

from carrel.actions.records import Page
from carrel.core.access import Actor, Permission
from carrel.core.errors import NotFound, Refusal
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.server.http.endpoint import (
    Endpoint,
    EndpointHandler,
    Request,
    ResponseModel,
    endpoint,
)
from carrel.server.http.query_fields import PageQuery, set_fields
from carrel.server.http.response import Response

AnyRequest: TypeAlias = Request[Any, Any]
ModelLoader: TypeAlias = Callable[[AnyRequest, Sequence[Record]], Awaitable[list[Any]]]
RecordLoader: TypeAlias = Callable[[AnyRequest], Awaitable[Record]]
GetAction: TypeAlias = Callable[[Ports, Actor, str], Awaitable[Record]]
PatchAction: TypeAlias = Callable[
    [Ports, Actor, str, Mapping[str, Any], IdempotencyKey | None], Awaitable[Record]
]
DeleteAction: TypeAlias = Callable[[Ports, Actor, str, IdempotencyKey | None], Awaitable[None]]
Refusals: TypeAlias = tuple[type[Refusal], ...]


class ListAction(Protocol):
    """Action that returns one page of records; other filters are those of its query."""

    async def __call__(
        self, ports: Ports, actor: Actor, *, cursor: str, limit: int
    ) -> Page[Record]: ...


def each_record(to_model: Callable[[Record], ResponseModel]) -> ModelLoader:
    """Loader of models that need no more than their record."""

    async def load(request: AnyRequest, records: Sequence[Record]) -> list[Any]:
        return [to_model(record) for record in records]

    return load


@dataclass(frozen=True, slots=True)
class RecordCollection:
    """A URL root with endpoints of one record type; each method declares an endpoint.

    The first line of `doc` is the endpoint's summary, the rest its description.
    """

    name: str
    """Prefix of the operation ids."""
    path: str
    tag: str
    model: type[ResponseModel]
    load_models: ModelLoader
    get_record: GetAction
    read_permission: Permission = Permission.TENANT_READ
    write_permission: Permission = Permission.TENANT_ADMIN
    deleted: ResponseModel | None = None
    """Response to a deletion; 204 without a body if None."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `endpoint` for every endpoint of the collection."""

    def list(
        self,
        doc: str,
        list_records: ListAction,
        page_model: Callable[..., ResponseModel],
        refusals: Refusals = (),
        *,
        query: type[PageQuery] = PageQuery,
    ) -> Endpoint:
        async def run(request: Request[None, PageQuery]) -> Response:
            page = await list_records(request.ports, request.actor, **structs.asdict(request.query))
            items = await self.load_models(request, page.items)
            return Response.json(page_model(items=items, next=page.next, total=page.total))

        return self._declare(
            f"list_{self.name}",
            doc,
            run,
            refusals,
            permission=self.read_permission,
            query=query,
            responses={200: page_model},
        )

    def get(self, doc: str, refusals: Refusals = (NotFound,)) -> Endpoint:
        async def run(request: AnyRequest) -> Response:
            return await self.respond(request, await self._get(request))

        return self._declare(
            "get",
            doc,
            run,
            refusals,
            permission=self.read_permission,
            responses={200: self.model},
        )

    def create(
        self, doc: str, body: Any, create: RecordLoader, reload: RecordLoader, refusals: Refusals
    ) -> Endpoint:
        """Declare POST; `reload` gets the record that an earlier request created."""

        async def run(request: AnyRequest) -> Response:
            return await self.respond(request, await create(request), 201)

        async def rebuild(request: AnyRequest, versions: tuple[int, ...]) -> Response:
            return await self.respond(request, await reload(request), 201)

        return self._declare(
            "create",
            doc,
            run,
            refusals,
            body=body,
            responses={201: self.model},
            rebuild=rebuild,
        )

    def patch(self, doc: str, body: Any, patch: PatchAction, refusals: Refusals) -> Endpoint:
        async def run(request: AnyRequest) -> Response:
            changes = request.body
            fields = changes if isinstance(changes, dict) else set_fields(changes)
            id, key = request.params["id"], request.idempotency_key
            record = await patch(request.ports, request.actor, id, fields, key)
            return await self.respond(request, record)

        async def rebuild(request: AnyRequest, versions: tuple[int, ...]) -> Response:
            # A record named by its slug is found under the slug that the patch set.
            slug = getattr(request.body, "slug", None)
            return await self.respond(request, await self._get(request, slug))

        return self._declare(
            "patch", doc, run, refusals, body=body, responses={200: self.model}, rebuild=rebuild
        )

    def delete(self, doc: str, delete: DeleteAction, refusals: Refusals) -> Endpoint:
        async def rebuild(request: AnyRequest, versions: tuple[int, ...] = ()) -> Response:
            return Response.empty(204) if self.deleted is None else Response.json(self.deleted)

        async def run(request: AnyRequest) -> Response:
            await delete(
                request.ports, request.actor, request.params["id"], request.idempotency_key
            )
            return await rebuild(request)

        responses = {204: None} if self.deleted is None else {200: type(self.deleted)}
        return self._declare("delete", doc, run, refusals, responses=responses, rebuild=rebuild)

    async def respond(self, request: AnyRequest, record: Record, status: int = 200) -> Response:
        """Response with the model of one record."""
        [model] = await self.load_models(request, [record])
        return Response.json(model, status)

    async def _get(self, request: AnyRequest, id: str | None = None) -> Record:
        return await self.get_record(request.ports, request.actor, id or request.params["id"])

    def _declare(
        self, operation: str, doc: str, run: EndpointHandler, refusals: Refusals, **options: Any
    ) -> Endpoint:
        run.__doc__ = doc
        method, path = _ROUTES[operation.partition("_")[0]]
        if "rebuild" in options:
            options |= {"idempotent": True, "permission": self.write_permission}
        options |= {"id": f"{self.name}_{operation}", "tag": self.tag, "refusals": refusals}
        return endpoint(method, self.path + path, **options, **self.options)(run)


_ROUTES: Mapping[str, tuple[str, str]] = {
    "list": ("GET", ""),
    "create": ("POST", ""),
    "get": ("GET", "/{id}"),
    "patch": ("PATCH", "/{id}"),
    "delete": ("DELETE", "/{id}"),
}
