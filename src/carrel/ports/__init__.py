"""Ports: protocols for storage, clock, sandboxes and other side effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from carrel.core.identifiers import TimestampMs
from carrel.core.lru_cache import LruCache
from carrel.core.outages import CorruptContent
from carrel.core.revision_cache import RevisionCache
from carrel.core.runs import Run
from carrel.ports.approvals import ApprovalSettings
from carrel.ports.attempt_limiter import AttemptLimiter
from carrel.ports.blobs import BlobReader, Blobs, LargeBlobStore
from carrel.ports.clock import Clock
from carrel.ports.command_slots import CommandSlots
from carrel.ports.credential_uses import CredentialUses
from carrel.ports.embeddings import IndexedTexts, SemanticIndex
from carrel.ports.erasure import Erasure
from carrel.ports.events import Events
from carrel.ports.git import Repositories, Repository
from carrel.ports.idempotency import IdempotencyStore
from carrel.ports.leader_lock import LeaderLock
from carrel.ports.maintenance import StoreMaintenance, StoreSnapshot, TableRows
from carrel.ports.object_store import ObjectStore
from carrel.ports.recalls import RecallLog
from carrel.ports.records import Records
from carrel.ports.runs import Runs
from carrel.ports.sandbox import Sandbox
from carrel.ports.sessions import Sessions, TranscriptFiles
from carrel.ports.tallies import Tallies
from carrel.ports.tokenizer import Tokenizer
from carrel.ports.trees import Trees
from carrel.ports.vault import Vault
from carrel.ports.webhooks import Deliveries, WebhookSender

__all__ = [
    "ApprovalSettings",
    "BlobReader",
    "Blobs",
    "Clock",
    "CommandSlots",
    "CorruptContent",
    "Deliveries",
    "Erasure",
    "Events",
    "HealthCheck",
    "IdempotencyStore",
    "IndexedTexts",
    "LargeBlobStore",
    "LeaderLock",
    "ObjectStore",
    "Ports",
    "RecallLog",
    "Records",
    "Repositories",
    "Repository",
    "Runs",
    "Sandbox",
    "SemanticIndex",
    "Sessions",
    "StoreMaintenance",
    "StoreSnapshot",
    "TableRows",
    "Tallies",
    "Tokenizer",
    "TranscriptFiles",
    "Trees",
    "Vault",
    "WebhookSender",
]


_MAX_LISTED: Final = 50_000
"""Files in cached listings."""

DEFAULT_RUN_LEASE_MS: Final = 60 * 60_000

HealthCheck = Callable[[], Awaitable[None]]
"""Checks a component; raises an error if it cannot be used."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports, as passed to actions."""

    trees: Trees
    blobs: Blobs
    records: Records
    runs: Runs
    events: Events
    idempotency: IdempotencyStore
    deliveries: Deliveries
    sessions: Sessions
    recalls: RecallLog
    tallies: Tallies
    erasure: Erasure
    vault: Vault
    webhook_sender: WebhookSender
    clock: Clock
    tokenizer: Tokenizer
    repositories: Repositories | None = None
    """None if git is disabled."""
    transcript_files: TranscriptFiles | None = None
    """None if transcripts are kept in the database only."""
    semantic_index: SemanticIndex | None = None
    """None if memories are only searched by full text."""
    health_checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    """Checks of `/readyz` by component."""
    sandboxes: Mapping[str, Sandbox] = field(default_factory=dict)
    """Sandbox providers by name."""
    command_slots: CommandSlots = field(default_factory=CommandSlots)
    attempts: AttemptLimiter = field(default_factory=AttemptLimiter)
    approvals: ApprovalSettings = field(default_factory=ApprovalSettings)
    run_lease_ms: TimestampMs = DEFAULT_RUN_LEASE_MS
    """A running run without a report for this long becomes abandoned; 0 means never."""
    store: object = field(default_factory=object)
    """Identity of the open store, for keys of caches and locks."""
    record_cache: RevisionCache = field(default_factory=RevisionCache)
    """Values derived from records, by records revision."""
    listing_cache: LruCache[Hashable, Any] = field(default_factory=lambda: LruCache(_MAX_LISTED))
    """Listings of memory stores, weighed in files, and the last paths of memories.

    Both are checked against the current revision or head.
    """
    credential_uses: CredentialUses = field(default_factory=CredentialUses)
    key_last_used: dict[str, TimestampMs] = field(default_factory=dict)
    """Last use of each key, not yet stored."""
    prompt_sizes: dict[str, tuple[Run, Mapping[str, int]]] = field(default_factory=dict)
    """Sizes of the prompts of runs by run id, not yet stored."""
