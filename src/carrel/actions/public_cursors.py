"""Cursors and ids of events and audit entries as tenants see them.

All tenants share one log of each, so its positions would tell how much others write.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from carrel.core.errors import ValidationError
from carrel.core.store.event import Event
from carrel.ports import CorruptContent, Ports

FROM_START: Final = "0"
"""Cursor before the oldest stored event."""
EVENT_ID_PREFIX: Final = "ev_"
_CONCEALED_LENGTH: Final = 40
"""Positions are padded, since the length of a number tells its magnitude."""


def conceal_cursor(ports: Ports, tenant: str, cursor: str) -> str:
    """Return the cursor as the tenant sees it; the same one for the same position."""
    return cursor if cursor == FROM_START else _conceal(ports, tenant, cursor)


def reveal_cursor(ports: Ports, tenant: str, cursor: str) -> str:
    """Return the position of a cursor that this tenant received. Raises ValidationError."""
    return cursor if cursor == FROM_START else _reveal(ports, tenant, cursor)


def reveal_event_id(ports: Ports, tenant: str, id: str) -> str:
    """Return the stored id of an event that this tenant received. Raises ValidationError."""
    return reveal_cursor(ports, tenant, id.removeprefix(EVENT_ID_PREFIX))


def conceal_event(ports: Ports, event: Event) -> Event:
    """Return the event with the cursor and id that its tenant sees."""
    id = EVENT_ID_PREFIX + _conceal(ports, event.tenant, event.id)
    return replace(event, cursor=conceal_cursor(ports, event.tenant, event.cursor), id=id)


def conceal_audit_id(ports: Ports, tenant: str, id: str) -> str:
    """Return the id of an audit entry as the tenant sees it, which is also its cursor."""
    return _conceal(ports, tenant, id, "audit")


def reveal_audit_id(ports: Ports, tenant: str, id: str) -> int:
    """Return the position of an audit entry; 0 if empty. Raises ValidationError."""
    return int(_reveal(ports, tenant, id, "audit")) if id else 0


def _conceal(ports: Ports, tenant: str, position: str, log: str = "event") -> str:
    return ports.vault.encrypt_repeatably(position.rjust(_CONCEALED_LENGTH), f"{log}/{tenant}")


def _reveal(ports: Ports, tenant: str, concealed: str, log: str = "event") -> str:
    try:
        return ports.vault.decrypt_repeatable(concealed, f"{log}/{tenant}").lstrip()
    except CorruptContent:
        raise ValidationError(f"invalid {log} cursor") from None
