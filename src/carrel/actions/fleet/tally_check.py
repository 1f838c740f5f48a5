"""Check of the tallies that the overview and the inbox are answered from."""

from __future__ import annotations

from carrel.core.maintenance.findings import FindingList
from carrel.ports import Ports


async def check_tallies(ports: Ports, findings: FindingList) -> None:
    """Count everything, and report the tallies that differ."""
    for wrong in await ports.tallies.find_wrong():
        subject = f"count of {wrong.kind} of {wrong.tenant}"
        text = f"it is {wrong.kept} and must be {wrong.counted}; run carrel reindex"
        findings.error(subject, text)
