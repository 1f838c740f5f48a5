"""How people are asked before a call runs: for how long, and who runs what they approve."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from carrel.core.identifiers import TimestampMs

DAY: Final = 86_400_000
LEASE: Final = 30_000


@dataclass(frozen=True, slots=True)
class ApprovalSettings:
    span: TimestampMs = DAY
    """Milliseconds for which an answer is waited for."""
    lease: TimestampMs = LEASE
    """Milliseconds without a sign of life after which a call that runs is taken for cut off."""
    approved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set in a process that took a yes, for whoever runs there what was approved."""
