"""Template records: fields, unique key and index keys."""

from __future__ import annotations

from msgspec import Struct

from carrel.core.search.name_words import name_index_keys
from carrel.core.store.record import (
    Record,
    RecordChange,
    RecordType,
    decode_body,
    encode_body,
    unique_key,
)


class TemplateRecord(Struct, frozen=True, rename="camel"):
    slug: str
    name: str


def template_from_record(record: Record) -> TemplateRecord:
    return decode_body(record, TemplateRecord)


def template_change(
    tenant: str, id: str, template: TemplateRecord, existing: Record | None = None
) -> RecordChange:
    """Record change that creates a template or replaces the existing one."""
    body = encode_body(template, existing)
    return RecordChange(
        tenant,
        RecordType.TEMPLATE,
        id,
        body,
        existing.revision if existing else 0,
        unique_keys=(unique_key(tenant, RecordType.TEMPLATE, "slug", template.slug),),
        index_keys=tuple(name_index_keys(RecordType.TEMPLATE, body)),
    )
