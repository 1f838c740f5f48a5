"""Classes of the schema's types; fields are attributes in snake_case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct

from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.accounts import person_from_record, tenant_from_record
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.template import template_from_record
from carrel.core.identifiers import ScopeKind, TimestampMs
from carrel.core.overlay.pins import PinStatus as Pin
from carrel.core.store.blob import Blob
from carrel.core.store.record import AuditEntry, Record, RecordType

Item = TypeVar("Item")


class PageType(Struct, Generic[Item], frozen=True):
    items: list[Item]
    next: str | int | None
    total: int | None = None


class ViewerType(Struct, frozen=True):
    name: str
    kind: CredentialKind
    role: Role | None
    permissions: list[str]
    tenant_id: str
    person_id: str | None
    agent_id: str | None
    workspace_id: str | None

    @classmethod
    def from_actor(cls, actor: Actor) -> ViewerType:
        return cls(
            name=actor.name,
            kind=actor.kind,
            role=actor.role,
            permissions=sorted(actor.permissions),
            tenant_id=actor.tenant,
            person_id=actor.person,
            agent_id=actor.agent,
            workspace_id=actor.workspace,
        )


class NamedRecordType(Struct, frozen=True):
    """A tenant or template."""

    id: str
    slug: str
    name: str
    created_at: TimestampMs
    updated_at: TimestampMs

    @classmethod
    def from_record(cls, record: Record) -> NamedRecordType:
        is_tenant = record.type is RecordType.TENANT
        fields = tenant_from_record(record) if is_tenant else template_from_record(record)
        return cls(record.id, fields.slug, fields.name, record.created_at, record.updated_at)


class AgentType(Struct, frozen=True):
    record: Record
    id: str
    tenant_id: str
    slug: str
    name: str
    template_id: str | None
    human_pair_id: str | None
    is_shared: bool
    owner_id: str | None
    config: Mapping[str, Any]
    tags: tuple[str, ...]
    created_at: TimestampMs
    updated_at: TimestampMs

    @classmethod
    def from_record(cls, record: Record) -> AgentType:
        agent = agent_from_record(record)
        return cls(
            record=record,
            id=record.id,
            tenant_id=record.tenant,
            slug=agent.slug,
            name=agent.name,
            template_id=agent.template_id,
            human_pair_id=agent.human_pair_id,
            is_shared=agent.is_shared,
            owner_id=agent.owner_id,
            config=agent.config,
            tags=agent.tags,
            created_at=record.created_at,
            updated_at=record.updated_at,
        )


class PersonType(Struct, frozen=True):
    id: str
    name: str
    email: str
    role: Role
    title: str | None
    timezone: str | None
    pronouns: str | None
    created_at: TimestampMs
    updated_at: TimestampMs

    @classmethod
    def from_record(cls, record: Record) -> PersonType:
        person = person_from_record(record)
        return cls(
            id=record.id,
            name=person.name,
            email=person.email,
            role=person.role,
            title=person.title,
            timezone=person.timezone,
            pronouns=person.pronouns,
            created_at=record.created_at,
            updated_at=record.updated_at,
        )


class PinStatusType(Struct, frozen=True):
    pin: Pin
    filename: str
    path: str
    folder_path: str | None
    pinned_sha: str | None
    latest_sha: str | None
    update_available: bool
    newly_offered: bool
    overridden: bool
    version: int
    latest_source: ScopeKind | None
    latest_version: int | None
    latest_at: TimestampMs | None
    served_sha: str | None
    declined: bool

    @classmethod
    def from_pin(cls, pin: Pin) -> PinStatusType:
        folder, _, name = pin.path.text.rpartition("/")
        pinned, latest = pin.pinned, pin.latest
        return cls(
            pin=pin,
            filename=name,
            path=pin.path.text,
            folder_path=folder or None,
            pinned_sha=pinned.digest if pinned else None,
            latest_sha=latest.digest if latest else None,
            update_available=pinned is not None and pin.update_available,
            newly_offered=pinned is None and pin.update_available,
            overridden=pin.overridden,
            version=pin.version,
            latest_source=pin.latest_from.kind if pin.latest_from else None,
            latest_version=pin.latest_head.version if pin.latest_head else None,
            latest_at=pin.latest_head.at if pin.latest_head else None,
            served_sha=pin.served.digest if pin.served else None,
            declined=pin.is_declined,
        )


class PinOfferType(Struct, frozen=True):
    """Latest content of a pinned file, as a template provides it."""

    blob: Blob
    path: str
    source: str
    latest_sha: str


class BulkOutcomeType(Struct, frozen=True):
    """Result of a bulk accept or roll back for one agent."""

    agent_id: str
    success: bool
    error: str | None


class BulkAcceptResultType(Struct, frozen=True):
    accepted: int
    failed: int
    results: list[BulkOutcomeType]


class BulkRollBackResultType(Struct, frozen=True):
    rolled_back: int
    failed: int
    results: list[BulkOutcomeType]


class AuditKeyType(Struct, frozen=True):
    id: str
    name: str


class AuditEntryType(Struct, frozen=True):
    id: str
    at: TimestampMs
    by: str
    by_name: str | None
    key: AuditKeyType | None
    action: str
    why: str
    subjects: tuple[str, ...]

    @classmethod
    def from_entry(cls, entry: AuditEntry) -> AuditEntryType:
        key = None if entry.key is None else AuditKeyType(entry.key.id, entry.key.name)
        return cls(
            *(entry.id, entry.at, entry.author, entry.author_name),
            *(key, entry.action, entry.reason, entry.subjects),
        )


def hex_digest(blob: Blob) -> str:
    return blob.digest.removeprefix("sha256:")
