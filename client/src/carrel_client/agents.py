"""Agents, and the templates that they follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.http_messages import HttpRequest
from carrel_client.models import (
    Model,
    RecordPage,
    model_from_json,
    model_list_field,
    page_from_json,
)
from carrel_client.requests import (
    api_path,
    drop_none,
    get_json,
    get_page,
    list_pages,
    send_idempotent,
    send_json,
)
from carrel_client.unset import UNSET, Unset, patch_body


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(Model):
    id: str
    slug: str
    name: str
    template_id: str | None
    human_pair_id: str | None
    """Id of the person that the agent works for."""
    is_shared: bool
    owner_id: str | None
    """Id of the person whose private items the agent shares."""
    config: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    tags: Sequence[str] = ()
    """In alphabetical order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSnippet(Model):
    """Code, a command or configuration that connects a runtime or an MCP client."""

    id: str
    name: str
    group: str
    """runtime or mcp."""
    language: str
    """shell, python, json or toml."""
    install: str
    """Command that installs what it needs; or empty."""
    file: str
    """Configuration file that it belongs into; or empty."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Model):
    """How programs connect to an agent."""

    url: str
    mcp_url: str
    key_placeholder: str
    """Stands for the key in every text."""
    snippets: tuple[ConnectionSnippet, ...] = model_list_field(ConnectionSnippet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template(Model):
    id: str
    slug: str
    name: str
    agent_count: int
    """How many agents follow it."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEffect(Model):
    """Effect of a change on one file of an agent."""

    path: str
    effect: str
    """added, removed, content, source, offered or rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOutcome(Model):
    """Result for one agent."""

    agent_id: str
    """Id, or the name that was not found."""
    slug: str
    name: str
    changed: bool
    error: str | None
    files: tuple[FileEffect, ...] = model_list_field(FileEffect)
    """Of a dry run."""
    erased: Mapping[str, int] | None = None
    """Sessions, memories, keys and files that a deletion erases; of a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOutcomes(Model):
    """Results of a change of many agents."""

    dry_run: bool
    changed: int
    failed: int
    results: tuple[AgentOutcome, ...] = model_list_field(AgentOutcome)


class Agents(Resource[Driver]):
    """The agents of the tenant."""

    @operation
    def create(  # noqa: PLR0913 - the fields of an agent, by name
        self,
        slug: str,
        name: str = "",
        *,
        template_id: str | None = None,
        human_pair_id: str | None = None,
        is_shared: bool = False,
        owner_id: str | None = None,
        config: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Agent]:
        """Create an agent; its pinned files are pinned as they are now.

        ``template_id`` is an id or a slug. Raises Conflict if the slug is in use, NotFound if
        there is no such template or person.
        """
        fields = {"templateId": template_id, "humanPairId": human_pair_id, "ownerId": owner_id}
        body = {"slug": slug, "name": name or slug, "isShared": is_shared}
        body |= drop_none({**fields, "config": config, "tags": None if tags is None else [*tags]})
        agent = yield from send_json(
            "POST", api_path("agents"), body, idempotency_key=idempotency_key
        )
        return model_from_json(Agent, agent)

    @operation
    def get(self, agent: str) -> Steps[Agent]:
        """By id or slug. Raises NotFound."""
        return model_from_json(Agent, (yield from get_json(api_path("agents", agent))))

    @operation
    def connection(self, agent: str) -> Steps[Connection]:
        """Snippets that connect runtimes and MCP clients. Raises NotFound."""
        path = api_path("agents", agent, "connection")
        return model_from_json(Connection, (yield from get_json(path)))

    @operation
    def list(
        self,
        *,
        q: str = "",
        template: str | None = None,
        tag: str | None = None,
        human: str | None = None,
        owner: str | None = None,
    ) -> Steps[tuple[Agent, ...]]:
        """Agents that meet every condition, in order of slug.

        ``q`` finds words of name and slug by their beginnings; ``template`` is an id, a slug or
        ``none``; ``human`` and ``owner`` are ids of people. Raises NotFound if there is no such
        template.
        """
        filters = {"template": template, "tag": tag, "human": human, "owner": owner}
        rows = yield from list_pages(api_path("agents"), drop_none({"q": q or None, **filters}))
        agents = [model_from_json(Agent, row) for row in rows]
        return tuple(sorted(agents, key=lambda agent: agent.slug))

    @operation
    def page(  # noqa: PLR0913 - filters, by name
        self,
        *,
        limit: int = 100,
        cursor: str = "",
        q: str = "",
        template: str | None = None,
        tag: str | None = None,
        human: str | None = None,
        owner: str | None = None,
    ) -> Steps[RecordPage[Agent]]:
        """As ``list``, but one page, in order of id, with the number of all."""
        filters = {"template": template, "tag": tag, "human": human, "owner": owner}
        query = drop_none({"q": q or None, **filters})
        page = yield from get_page(api_path("agents"), limit, cursor, query)
        return page_from_json(Agent, page)

    @operation
    def tags(self) -> Steps[Mapping[str, int]]:
        """The number of agents of each tag."""
        response = yield from get_json(api_path("tags"))
        return {item["tag"]: item["agents"] for item in response["items"]}

    @operation
    def change(  # noqa: PLR0913 - the fields of an agent, by name
        self,
        agent: str,
        *,
        slug: str | Unset = UNSET,
        name: str | Unset = UNSET,
        template_id: str | Unset | None = UNSET,
        human_pair_id: str | Unset | None = UNSET,
        is_shared: bool | Unset = UNSET,
        owner_id: str | Unset | None = UNSET,
        config: Mapping[str, Any] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        idempotency_key: str | None = None,
    ) -> Steps[Agent]:
        """Change the given fields and the files derived from them; None clears."""
        body = patch_body(
            {
                "slug": slug,
                "name": name,
                "template_id": template_id,
                "human_pair_id": human_pair_id,
                "is_shared": is_shared,
                "owner_id": owner_id,
                "config": config,
                "tags": tags if isinstance(tags, Unset) else [*tags],
            }
        )
        path = api_path("agents", agent)
        changed = yield from send_json("PATCH", path, body, idempotency_key=idempotency_key)
        return model_from_json(Agent, changed)

    @operation
    def change_many(  # noqa: PLR0913 - the fields of a change, by name
        self,
        agents: Sequence[str] | None = None,
        *,
        filter: Mapping[str, str] | None = None,
        template_id: str | Unset | None = UNSET,
        human_pair_id: str | Unset | None = UNSET,
        add_tags: Sequence[str] | Unset = UNSET,
        remove_tags: Sequence[str] | Unset = UNSET,
        delete: bool | Unset = UNSET,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Steps[AgentOutcomes]:
        """Move, re-pair, tag or delete agents: those named, or those that meet the filter.

        ``agents`` are ids or slugs; ``filter`` has the conditions of ``list``, and an empty one is
        met by all. A refusal for one agent stops no other. A dry run stores nothing and says what
        would change. Raises NotFound if there is no such template or person.
        """
        change = {
            "template_id": template_id,
            "human_pair_id": human_pair_id,
            "add_tags": add_tags if isinstance(add_tags, Unset) else [*add_tags],
            "remove_tags": remove_tags if isinstance(remove_tags, Unset) else [*remove_tags],
            "delete": delete,
        }
        selection = {
            "agents": None if agents is None else [*agents],
            "filter": None if filter is None else {**filter},
        }
        body = {**drop_none(selection), "change": patch_body(change), "dryRun": dry_run}
        path = api_path("agent-changes")
        outcomes = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return model_from_json(AgentOutcomes, outcomes)

    @operation
    def duplicate(
        self, agent: str, slug: str, name: str = "", *, idempotency_key: str | None = None
    ) -> Steps[Agent]:
        """Create an agent with the own files, pins and settings of another one.

        Without its memories, notes, sessions, keys and items. Raises Conflict if the slug is in
        use.
        """
        path, body = api_path("agents", agent, "duplicate"), {"slug": slug, "name": name or slug}
        created = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return model_from_json(Agent, created)

    @operation
    def delete(self, agent: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Delete an agent and the keys that are bound to it."""
        request = HttpRequest("DELETE", api_path("agents", agent))
        yield from send_idempotent(request, idempotency_key)


class Templates(Resource[Driver]):
    """The templates of the tenant."""

    @operation
    def create(
        self, slug: str, name: str = "", *, idempotency_key: str | None = None
    ) -> Steps[Template]:
        """Raises Conflict if the slug is in use."""
        path, body = api_path("templates"), {"slug": slug, "name": name or slug}
        template = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return model_from_json(Template, template)

    @operation
    def get(self, template: str) -> Steps[Template]:
        """By id or slug. Raises NotFound."""
        return model_from_json(Template, (yield from get_json(api_path("templates", template))))

    @operation
    def list(self, *, q: str = "") -> Steps[tuple[Template, ...]]:
        """Templates, in order of slug; ``q`` finds words of name and slug by their beginnings."""
        rows = yield from list_pages(api_path("templates"), drop_none({"q": q or None}))
        templates = [model_from_json(Template, row) for row in rows]
        return tuple(sorted(templates, key=lambda template: template.slug))

    @operation
    def page(
        self, *, limit: int = 100, cursor: str = "", q: str = ""
    ) -> Steps[RecordPage[Template]]:
        """As ``list``, but one page, in order of id, with the number of all."""
        query = drop_none({"q": q or None})
        page = yield from get_page(api_path("templates"), limit, cursor, query)
        return page_from_json(Template, page)

    @operation
    def change(
        self,
        template: str,
        *,
        slug: str | Unset = UNSET,
        name: str | Unset = UNSET,
        idempotency_key: str | None = None,
    ) -> Steps[Template]:
        """Change slug or name; the followers stay."""
        path, body = api_path("templates", template), patch_body({"slug": slug, "name": name})
        changed = yield from send_json("PATCH", path, body, idempotency_key=idempotency_key)
        return model_from_json(Template, changed)

    @operation
    def duplicate(
        self, template: str, slug: str, name: str = "", *, idempotency_key: str | None = None
    ) -> Steps[Template]:
        """Create a template with the files of another one; its agents stay there.

        Raises Conflict if the slug is in use.
        """
        path = api_path("templates", template, "duplicate")
        body = {"slug": slug, "name": name or slug}
        created = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return model_from_json(Template, created)

    @operation
    def delete(self, template: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Raises Conflict if agents follow it."""
        request = HttpRequest("DELETE", api_path("templates", template))
        yield from send_idempotent(request, idempotency_key)
