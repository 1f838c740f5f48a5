"""The tenant's accounts: tenants, people, keys, secrets and the audit log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import ValidationError
from carrel_client.http_messages import HttpRequest
from carrel_client.models import (
    Model,
    RecordPage,
    model_field,
    model_from_json,
    models_from_json,
    page_from_json,
    wire_name,
)
from carrel_client.requests import (
    api_path,
    drop_none,
    get_json,
    get_page,
    items_of,
    list_pages,
    send_idempotent,
    send_json,
    send_with_retry,
)
from carrel_client.unset import UNSET, Unset, patch_body


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant(Model):
    id: str
    slug: str
    name: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTenant(Tenant):
    owner_id: str
    owner_token: str
    """Returned only on creation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person(Model):
    id: str
    name: str
    email: str
    role: str
    """owner, admin or member."""
    title: str | None
    timezone: str | None
    pronouns: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Key(Model):
    """A key without its token."""

    id: str
    name: str
    kind: str
    """person, service or agent."""
    person_id: str | None
    agent_id: str | None
    workspace: str | None
    scopes: tuple[str, ...] | None
    """None grants everything that the holder may do."""
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    created_by_key_id: str | None = None
    """Key that created or replaced it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKey(Key):
    key: str
    """Returned only on creation; the server stores only its hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation(Model):
    """A one-time sign-in code for a person."""

    code: str
    """Returned only on creation."""
    link: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret(Model):
    """A secret without its value."""

    id: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditKey(Model):
    """Key through which an audited change was made, with the name it had then."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry(Model):
    id: str
    at: datetime
    author: str = wire_name("by")
    author_name: str | None = wire_name("byName")
    """None for the server, and once deleted."""
    key: AuditKey | None = model_field(AuditKey)
    reason: str = wire_name("why")
    subjects: tuple[str, ...]
    """Changed records as ``type/id``."""
    action: str = ""
    """What was done, without names of records."""
    objects: Sequence[Mapping[str, Any]] = ()
    """Type, id, path and name of the records."""


class Tenants(Resource[Driver]):
    """The caller's tenant; with the platform's credential, new tenants."""

    @operation
    def create(
        self,
        slug: str,
        name: str,
        *,
        owner_name: str,
        owner_email: str,
        idempotency_key: str | None = None,
    ) -> Steps[CreatedTenant]:
        """Create a tenant with an owner. Raises Conflict if the slug is in use.

        Needs the platform's token; in process it needs none.
        """
        owner = {"name": owner_name, "email": owner_email}
        body = {"slug": slug, "name": name, "owner": owner}
        tenant = yield from send_json(
            "POST", api_path("tenants"), body, idempotency_key=idempotency_key
        )
        return model_from_json(CreatedTenant, tenant)

    @operation
    def me(self) -> Steps[Tenant]:
        """The tenant of the credential."""
        return model_from_json(Tenant, (yield from get_json(api_path("tenants", "me"))))

    @operation
    def rename(self, name: str, *, idempotency_key: str | None = None) -> Steps[Tenant]:
        path, body = api_path("tenants", "me"), {"name": name}
        tenant = yield from send_json("PATCH", path, body, idempotency_key=idempotency_key)
        return model_from_json(Tenant, tenant)


class People(Resource[Driver]):
    """The people of the tenant."""

    @operation
    def create(  # noqa: PLR0913 - the fields of a person, by name
        self,
        name: str,
        email: str,
        role: str = "member",
        *,
        title: str | None = None,
        timezone: str | None = None,
        pronouns: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Person]:
        """Raises Conflict if the email address is in use."""
        body = {"name": name, "email": email, "role": role}
        body |= drop_none({"title": title, "timezone": timezone, "pronouns": pronouns})
        person = yield from send_json(
            "POST", api_path("people"), body, idempotency_key=idempotency_key
        )
        return model_from_json(Person, person)

    @operation
    def get(self, person_id: str) -> Steps[Person]:
        """Raises NotFound."""
        return model_from_json(Person, (yield from get_json(api_path("people", person_id))))

    @operation
    def list(self, *, q: str = "", role: str | None = None) -> Steps[tuple[Person, ...]]:
        """People, in order of name; ``q`` finds words of name and e-mail by their beginnings."""
        query = drop_none({"q": q or None, "role": role})
        people = models_from_json(Person, (yield from list_pages(api_path("people"), query)))
        return tuple(sorted(people, key=lambda person: person.name))

    @operation
    def page(
        self, *, limit: int = 100, cursor: str = "", q: str = "", role: str | None = None
    ) -> Steps[RecordPage[Person]]:
        """As ``list``, but one page, in order of id, with the number of all."""
        query = drop_none({"q": q or None, "role": role})
        return page_from_json(
            Person, (yield from get_page(api_path("people"), limit, cursor, query))
        )

    @operation
    def change(  # noqa: PLR0913 - the fields of a person, by name
        self,
        person_id: str,
        *,
        name: str | Unset = UNSET,
        email: str | Unset = UNSET,
        role: str | Unset = UNSET,
        title: str | Unset | None = UNSET,
        timezone: str | Unset | None = UNSET,
        pronouns: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
    ) -> Steps[Person]:
        """Change the given fields; None clears. The last owner stays an owner."""
        body = patch_body({"name": name, "email": email, "role": role})
        body |= patch_body({"title": title, "timezone": timezone, "pronouns": pronouns})
        path = api_path("people", person_id)
        person = yield from send_json("PATCH", path, body, idempotency_key=idempotency_key)
        return model_from_json(Person, person)

    @operation
    def delete(self, person_id: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Delete a person and every key that they hold."""
        request = HttpRequest("DELETE", api_path("people", person_id))
        yield from send_idempotent(request, idempotency_key)

    @operation
    def invite(self, person_id: str, *, idempotency_key: str | None = None) -> Steps[Invitation]:
        """Create a one-time sign-in link for a person; earlier invitations end."""
        path = api_path("people", person_id, "invite")
        invitation = yield from send_json("POST", path, None, idempotency_key=idempotency_key)
        return model_from_json(Invitation, invitation)


class Keys(Resource[Driver]):
    """API keys: the caller's own; with tenant:admin all of the tenant."""

    @operation
    def create(  # noqa: PLR0913 - the fields of a key, by name
        self,
        name: str,
        kind: str = "service",
        *,
        person_id: str | None = None,
        agent_id: str | None = None,
        workspace: str | None = None,
        scopes: Collection[str] | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[CreatedKey]:
        """Create a key for a service, an agent or yourself; invite other people instead.

        It lives no longer than the key that creates it. Raises ValidationError for a time without
        a timezone.
        """
        if expires_at is not None and expires_at.tzinfo is None:
            raise ValidationError("a time needs a timezone")
        fields = {"personId": person_id, "agentId": agent_id, "workspace": workspace}
        fields["expiresAt"] = None if expires_at is None else expires_at.isoformat()
        body = {"name": name, "kind": kind, **drop_none(fields)}
        body |= {} if scopes is None else {"scopes": list(scopes)}
        key = yield from send_json("POST", api_path("keys"), body, idempotency_key=idempotency_key)
        return model_from_json(CreatedKey, key)

    @operation
    def get(self, key_id: str) -> Steps[Key]:
        """Raises NotFound."""
        return model_from_json(Key, (yield from get_json(api_path("keys", key_id))))

    @operation
    def list(self) -> Steps[tuple[Key, ...]]:
        return models_from_json(Key, (yield from list_pages(api_path("keys"))))

    @operation
    def page(self, *, limit: int = 100, cursor: str = "") -> Steps[RecordPage[Key]]:
        """As ``list``, but one page, in order of id, with the number of all."""
        return page_from_json(Key, (yield from get_page(api_path("keys"), limit, cursor)))

    @operation
    def rotate(self, key_id: str, *, idempotency_key: str | None = None) -> Steps[CreatedKey]:
        """Replace a key by a new one; the old one stays valid for an hour."""
        path = api_path("keys", key_id, "rotate")
        key = yield from send_json("POST", path, None, idempotency_key=idempotency_key)
        return model_from_json(CreatedKey, key)

    @operation
    def revoke(
        self, key_id: str, *, created_keys: bool = False, idempotency_key: str | None = None
    ) -> Steps[None]:
        """Revoke a key; the next request with it is refused.

        `created_keys` also revokes the keys and invitations that it led to.
        """
        query = {"createdKeys": "true"} if created_keys else {}
        request = HttpRequest("DELETE", api_path("keys", key_id), query=query)
        yield from send_idempotent(request, idempotency_key)


class Secrets(Resource[Driver]):
    """Secrets: their values are stored and never returned."""

    @operation
    def put(
        self, secret_id: str, value: str, *, idempotency_key: str | None = None
    ) -> Steps[Secret]:
        """Store a value; later writes replace it by ``[REDACTED:<id>]``."""
        path = api_path("secrets", secret_id)
        body = {"value": value}
        secret = yield from send_json("PUT", path, body, idempotency_key=idempotency_key)
        return model_from_json(Secret, secret)

    @operation
    def get(self, secret_id: str) -> Steps[Secret]:
        """Raises NotFound."""
        return model_from_json(Secret, (yield from get_json(api_path("secrets", secret_id))))

    @operation
    def list(self) -> Steps[tuple[Secret, ...]]:
        return models_from_json(Secret, (yield from list_pages(api_path("secrets"))))

    @operation
    def delete(self, secret_id: str, *, idempotency_key: str | None = None) -> Steps[None]:
        """Delete a value; later writes no longer redact it."""
        request = HttpRequest("DELETE", api_path("secrets", secret_id))
        yield from send_idempotent(request, idempotency_key)


class Audit(Resource[Driver]):
    """The audit log of the tenant's records, append-only."""

    @operation
    def list(  # noqa: PLR0913 - filters, by name
        self,
        *,
        author: str = "",
        action: str = "",
        object: str = "",
        start: datetime | None = None,
        end: datetime | None = None,
        before: str = "",
        limit: int = 100,
    ) -> Steps[tuple[AuditEntry, ...]]:
        """A page of entries, newest first; ``before`` is the id of the last one seen.

        ``author`` is the id of an author or key, ``object`` a record as ``type/id`` or a type.
        """
        query = _audit_query(author, action, object, start, end)
        query |= {"limit": str(limit)} | ({"cursor": before} if before else {})
        page = yield from get_json(api_path("audit"), query)
        return models_from_json(AuditEntry, items_of(page))

    @operation
    def export(
        self,
        *,
        format: str = "csv",
        author: str = "",
        action: str = "",
        object: str = "",
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Steps[bytes]:
        """All entries that meet the conditions, as ``csv`` or as ``json``, an object a line."""
        query = _audit_query(author, action, object, start, end) | {"format": format}
        request = HttpRequest("GET", api_path("audit", "export"), query)
        response = yield from send_with_retry(request)
        return response.content


def _audit_query(
    author: str, action: str, object: str, start: datetime | None, end: datetime | None
) -> dict[str, str]:
    texts = {"who": author or None, "action": action or None, "object": object or None}
    times = {"from": start and start.isoformat(), "to": end and end.isoformat()}
    return drop_none({**texts, **times})
