"""Names of records, for listings that show them beside ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from carrel.core.store.record import RecordType, decode_body
from carrel.ports import Ports

_NAMED_TYPES: Final = (
    RecordType.AGENT,
    RecordType.TEMPLATE,
    RecordType.PERSON,
    RecordType.KEY,
    RecordType.SANDBOX,
    RecordType.WORKSPACE,
    RecordType.WEBHOOK,
)


class _NamedRecord(Struct, frozen=True):
    """What a listing shows of a record beside its id."""

    name: str = ""
    url: str = ""


async def load_record_names(
    ports: Ports, tenant: str, records: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Load current names of records, given as type and id, with a query for each type."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for record_type, id in records:
        ids[record_type].add(id)
    names: dict[tuple[str, str], str] = {}
    for record_type in _NAMED_TYPES:
        if record_type in ids:
            batch = await ports.records.get(tenant, record_type, sorted(ids[record_type]))
            for record in filter(None, batch):
                body = decode_body(record, _NamedRecord)
                names[record_type, record.id] = body.name or body.url
    return names
