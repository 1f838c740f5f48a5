"""Entries to append to a session: validation and redaction."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.core.errors import PayloadTooLarge, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.sessions.session import (
    MAX_CONTENT_BYTES,
    MAX_NAME_LENGTH,
    SpeakerRole,
    TranscriptEntry,
)
from carrel.core.sessions.session_items import check_item_depth, encode_item, item_text
from carrel.ports import Ports

_INLINE_CHARS: Final = 64 * 1024
"""More characters are redacted in a thread."""
_ITEM_CHARS: Final = 16 * 1024
"""Characters that an item is taken to have; its real size is not known cheaply."""
_NAME_PATTERN: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{MAX_NAME_LENGTH}}}")


@dataclass(frozen=True, slots=True)
class NewEntry:
    """Transcript entry to append."""

    role: str
    content: str | None
    """None: the text of the item."""
    message: str | None = None
    plugin: str = ""
    sender: str | None = None
    item: Any = None
    """Structured form of the entry, any JSON value."""
    run: str | None = None
    """Run that wrote the entry; None: that of the session."""


async def redact_entries(
    ports: Ports, tenant: str, new_entries: Sequence[NewEntry]
) -> tuple[TranscriptEntry, ...]:
    """Validate entries and redact all their fields. Raises ValidationError or PayloadTooLarge."""
    rules = await load_rules(ports, tenant)
    now = ports.clock.now()

    def redact() -> tuple[TranscriptEntry, ...]:
        return tuple(_redact_entry(rules, entry, now) for entry in new_entries)

    chars = sum(
        len(entry.content or "") + (entry.item is not None) * _ITEM_CHARS for entry in new_entries
    )
    return await asyncio.to_thread(redact) if chars > _INLINE_CHARS else redact()


def clean_name(rules: TenantRules, text: str, field_name: str) -> str:
    """Validate and redact a short field. Raises ValidationError."""
    if not _NAME_PATTERN.fullmatch(text):
        raise ValidationError(
            f"{field_name} must have at most {MAX_NAME_LENGTH} characters and no control characters"
        )
    return rules.redact_text(text) if rules.redactor.find_in_text(text) else text


def _redact_entry(rules: TenantRules, new_entry: NewEntry, at: TimestampMs) -> TranscriptEntry:
    try:
        role = SpeakerRole(new_entry.role)
    except ValueError:
        raise ValidationError(f"role must be one of {', '.join(SpeakerRole)}") from None
    item = None if new_entry.item is None else _redact_item(rules, new_entry.item)
    if new_entry.content is None and new_entry.item is None:
        raise ValidationError("an entry needs content or an item")
    text = item_text(new_entry.item) if new_entry.content is None else new_entry.content
    return TranscriptEntry(
        sequence=0,
        at=at,
        role=role,
        content=_redact_content(rules, text),
        message=clean_name(rules, new_entry.message or "", "messageId") or None,
        plugin=clean_name(rules, new_entry.plugin, "sourcePlugin"),
        sender=clean_name(rules, new_entry.sender or "", "senderId") or None,
        item=item,
        run=new_entry.run,
    )


def _redact_content(rules: TenantRules, text: str) -> str:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise ValidationError("content must be valid UTF-8 text") from None
    if len(content) > MAX_CONTENT_BYTES:
        raise PayloadTooLarge(f"content must have at most {MAX_CONTENT_BYTES} bytes")
    return rules.redactor.redact(content).content.decode()


def _redact_item(rules: TenantRules, item: Any) -> str:
    """Return an item as JSON without secrets.

    If its JSON still has one, such as a number or a text across several values, the item becomes a
    text.
    """
    check_item_depth(item)
    encode_item(item)  # Refuses what cannot be redacted either.
    encoded = encode_item(rules.redact_fields(item))
    redacted = rules.redactor.redact(encoded.encode())
    return encode_item(redacted.content.decode()) if redacted.replaced else encoded
