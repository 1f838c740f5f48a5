"""Records: the facts beside the files (tenants, people, keys, secrets, webhooks, agents …).

A record is a small JSON document with an id. It changes inside a Commit, in the same transaction
as files, so that a fact and the files that follow from it never disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from carrel.core.identifiers import TimestampMs


class RecordType(StrEnum):
    """What a record is about."""

    TENANT = "tenant"
    PERSON = "person"
    KEY = "key"
    POLICY = "policy"
    SECRET = "secret"
    WEBHOOK = "webhook"
    TEMPLATE = "template"
    AGENT = "agent"
    DEFAULTS = "defaults"
    """What a tenant's defaults have had from us."""
    CODE = "code"
    VAULT = "vault"
    MEMORY = "memory"
    """One thing that an agent was told to remember."""
    PROMOTION = "promotion"
    """That a memory stands in MEMORY.md, under the memory's id."""
    DREAM = "dream"
    """One sweep over an agent's memories, and what came of it."""

    SANDBOX = "sandbox"
    """Where commands of agents run, and who is asked before they do."""
    WORKSPACE = "workspace"
    """Files that agents share, under ``ws_…``."""
    APPROVAL = "approval"
    """A call that waits for somebody's yes, and what became of it."""
    JOB = "job"
    """A command that goes on after the call that started it."""
    CHECKPOINT = "checkpoint"
    """A revision of an agent's files that somebody wanted to find again."""


QUIET: Final = frozenset(
    {RecordType.MEMORY, RecordType.PROMOTION, RecordType.DREAM, RecordType.CHECKPOINT}
)
"""What agents write themselves, and often: nobody's rights or files rest on these.

Hence a change of these raises no revision of all records, and stands in no audit."""


TOLD: Final = frozenset(
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
"""Whose changes are events: what a member may look at, and whose ids say nothing by themselves."""


class Record(Struct, frozen=True):
    tenant: str
    type: RecordType
    id: str
    revision: int
    """From 1, rising with every change of this record."""
    body: Mapping[str, Any]
    created_at: TimestampMs
    updated_at: TimestampMs


class RecordChange(Struct, frozen=True):
    """One record as it should become.

    ``expected`` is the revision that was seen: 0 creates, None takes whatever is there.
    ``body`` None deletes. ``handles`` are names that only one record in the whole store may have;
    ``links`` are names under which it can be listed within its tenant and noun. Both replace what
    the record had.
    """

    tenant: str
    type: RecordType
    id: str
    body: Mapping[str, Any] | None
    expected: int | None = None
    unique_keys: tuple[str, ...] = ()
    index_keys: tuple[str, ...] = ()


class AuditEntry(Struct, frozen=True):
    """One line of the audit: a commit that changed records, or named some. Only appended to."""

    id: int
    tenant: str
    at: TimestampMs
    author: str
    reason: str
    subjects: tuple[str, ...]
    """The records that it changed or was about, as ``noun/id``."""


class CollectionRevision(Struct, frozen=True, gc=False):
    """All records of one noun in one tenant, at the revision that rises with any change there."""

    tenant: str
    type: RecordType
    revision: int


def unique_key(tenant: str, record_type: RecordType, name: str, value: str) -> str:
    """A name unique within one tenant and noun, such as a slug or an e-mail address."""
    return f"{tenant}/{record_type}/{name}:{value}"


def global_unique_key(record_type: RecordType, name: str, value: str) -> str:
    """A name unique in the whole store, such as the hash of a key."""
    return f"*/{record_type}/{name}:{value}"
