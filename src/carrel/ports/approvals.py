"""Settings of approvals: answer timeout and worker lease."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from carrel.core.identifiers import TimestampMs

DAY_MS: Final = 86_400_000
CLAIM_LEASE_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class ApprovalSettings:
    timeout_ms: TimestampMs = DAY_MS
    """Time in which an approval can be answered."""
    lease_ms: TimestampMs = CLAIM_LEASE_MS
    """A running call without a heartbeat for this long counts as interrupted."""
    approved_event: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when this process recorded an approval; wakes its worker."""
