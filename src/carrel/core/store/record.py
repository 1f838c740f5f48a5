"""Records: JSON documents beside the files, such as tenants, keys and agents.

A record changes inside a Commit, in the same transaction as files, so both stay consistent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from carrel.core.identifiers import TimestampMs


class RecordType(StrEnum):
    """Type of a record."""

    TENANT = "tenant"
    PERSON = "person"
    KEY = "key"
    POLICY = "policy"
    SECRET = "secret"
    WEBHOOK = "webhook"
    TEMPLATE = "template"
    AGENT = "agent"
    DEFAULTS = "defaults"
    """State of the packaged files in a tenant's defaults."""
    CODE = "code"
    VAULT = "vault"
    MEMORY = "memory"
    """One text that an agent remembers."""
    PROMOTION = "promotion"
    """Promotion of a memory into MEMORY.md; has the memory's id."""
    DREAM = "dream"
    """One consolidation of an agent's memories and its result."""

    SANDBOX = "sandbox"
    """Configuration of a sandbox, with its permission mode."""
    WORKSPACE = "workspace"
    """A workspace shared by agents, `ws_…`."""
    ROOT_DIRECTORY = "root_directory"
    """Mode and time of a workspace's root; has the workspace's id."""
    APPROVAL = "approval"
    """A tool call that needs approval, and its result."""
    JOB = "job"
    """A background command."""
    CHECKPOINT = "checkpoint"
    """A named revision of an agent's files."""
    REDACTION = "redaction"
    """Who redacted a version and when; its id names scope and version."""
    ERASURE = "erasure"
    """A deletion of which something may be left; see `core.pending_erasure`."""
    REVIEW = "review"
    """A person's decision about an offered pinned file, for one agent or many."""


UNAUDITED_TYPES: Final = frozenset(
    {
        RecordType.MEMORY,
        RecordType.PROMOTION,
        RecordType.DREAM,
        RecordType.CHECKPOINT,
        RecordType.ROOT_DIRECTORY,
        RecordType.REDACTION,
        RecordType.ERASURE,
        RecordType.REVIEW,
    }
)
"""Types that no permission depends on, and of which there are many.

Their changes do not increase the records revision and are not audited.
"""


EVENTED_TYPES: Final = frozenset(
    {
        RecordType.TENANT,
        RecordType.PERSON,
        RecordType.POLICY,
        RecordType.TEMPLATE,
        RecordType.AGENT,
        RecordType.DEFAULTS,
        RecordType.SANDBOX,
        RecordType.WORKSPACE,
        RecordType.DREAM,
        RecordType.MEMORY,
    }
)
"""Types whose changes are logged as events.

Members may see them, and their ids are not sensitive.
"""


Body = TypeVar("Body", bound=Struct)


class Record(Struct, frozen=True):
    tenant: str
    type: RecordType
    id: str
    revision: int
    """Starts at 1 and increases with every change of the record."""
    body: Mapping[str, Any]
    """Stored JSON; read with `decode_body` or the `x_from_record` of its type."""
    created_at: TimestampMs
    updated_at: TimestampMs


class RecordChange(Struct, frozen=True):
    """Target state of one record.

    `expected` is the revision that was read: 0 creates, None matches any. `body` None deletes.
    `unique_keys` are unique in the whole store; `index_keys` list the record within its tenant and
    type. Both replace the record's previous ones.
    """

    tenant: str
    type: RecordType
    id: str
    body: Mapping[str, Any] | None
    expected: int | None = None
    unique_keys: tuple[str, ...] = ()
    index_keys: tuple[str, ...] = ()


def decode_body(record: Record, body_type: type[Body]) -> Body:
    """Body of a record as the struct of its type; ignores keys it does not define."""
    return msgspec.convert(record.body, body_type)


def encode_body(body: Struct, previous: Record | None = None) -> dict[str, Any]:
    """Body to store, with the keys of `previous` that its struct does not define.

    Another version of the server may have written such keys.
    """
    encoded: dict[str, Any] = msgspec.to_builtins(body)
    if previous is None:
        return encoded
    defined = body.__struct_encode_fields__
    return {name: value for name, value in previous.body.items() if name not in defined} | encoded


def deletion(record: Record) -> RecordChange:
    """Change that deletes the record if it is unchanged."""
    return RecordChange(record.tenant, record.type, record.id, None, record.revision)


class RecordFilter(Struct, frozen=True):
    """Records that a listing shows: those that meet every condition."""

    index_keys: tuple[str, ...] = ()
    """Index keys that the record has."""
    key_prefixes: tuple[str, ...] = ()
    """For each of them, the record has an index key that begins with it."""

    @property
    def key_ranges(self) -> list[tuple[str, str]]:
        """Conditions as ranges of index keys, lower bound included, the most selective first."""
        exact = [(key, f"{key}\x01") for key in self.index_keys]
        return exact + [(prefix, f"{prefix}\U0010ffff") for prefix in self.key_prefixes]

    def matches(self, index_keys: Sequence[str]) -> bool:
        """Whether a record with these index keys meets every condition."""
        return set(self.index_keys) <= set(index_keys) and all(
            any(key.startswith(prefix) for key in index_keys) for prefix in self.key_prefixes
        )


EVERY_RECORD: Final = RecordFilter()


class KeyReference(Struct, frozen=True, gc=False):
    """Id and name of an API key, as recorded when it was used."""

    id: str
    name: str


NO_KEY: Final = KeyReference("", "")
"""Stored where the author acted without a key, such as the server itself."""


class AuditEntry(Struct, frozen=True):
    """One append-only audit entry: a commit that changed or named records."""

    id: str
    """Position in the log of all tenants; concealed before a tenant sees it."""
    tenant: str
    at: TimestampMs
    author: str
    reason: str
    subjects: tuple[str, ...]
    """Records that the commit changed or named, as `type/id`."""
    key: KeyReference | None = None
    """Key through which the author acted; None without one."""
    author_name: str | None = None
    """Current name of the person, or name of the key; not stored, and None once deleted."""
    action: str = ""
    """What was done, without names of records."""
    object_names: Mapping[str, str] = {}
    """Current names of the subjects that have one; not stored."""


class CollectionRevision(Struct, frozen=True, gc=False):
    """Revision of one record collection (tenant, type).

    Increases with every change in it.
    """

    tenant: str
    type: RecordType
    revision: int


class RecordRevision(Struct, frozen=True, gc=False):
    """Revision at which one record was read; 0 if it did not exist."""

    tenant: str
    type: RecordType
    id: str
    revision: int


def record_revision(record: Record) -> RecordRevision:
    return RecordRevision(record.tenant, record.type, record.id, record.revision)


def unique_key(tenant: str, record_type: RecordType, name: str, value: str) -> str:
    """Key that is unique within one tenant and record type, such as a slug."""
    return f"{tenant}/{record_type}/{name}:{value}"


def global_unique_key(record_type: RecordType, name: str, value: str) -> str:
    """Key that is unique in the whole store, such as the hash of an API key."""
    return f"*/{record_type}/{name}:{value}"
