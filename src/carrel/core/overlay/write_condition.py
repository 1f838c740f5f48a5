"""If-Match and If-None-Match of a write: whether it conflicts with the current file."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.compose import File, etag_without_update
from carrel.core.store.commit import Expect

_SINGLE_LAYER_ETAG: Final = re.compile(r'"v([1-9][0-9]{0,17})"')
"""ETag of a file in a stack of one layer: see compose.file_etag."""


class WriteCondition(Struct, frozen=True, gc=False):
    """Precondition on the composed file that a write requires."""

    etags: frozenset[str] | None = None
    """One of these must match; `*` matches any existing file.

    An available update does not make an ETag stale.
    """
    absent: bool = False

    def check(self, path: Path, current: File | None) -> None:
        if self.etags is None and not self.absent:
            return
        version = current.version if current else 0
        if self.absent and current:
            raise WorkspaceConflict(f"{path} already exists", version)
        if self.etags is None:
            return
        if current is None:
            raise WorkspaceConflict(f"{path} does not exist", version)
        if not {"*", etag_without_update(current.etag)} & set(map(etag_without_update, self.etags)):
            raise WorkspaceConflict(f"{path} changed since it was read", version)

    def as_single_layer_expect(self, scope: Scope, path: Path) -> tuple[Expect, ...] | None:
        """The condition as expectations on one layer; None if the file must be read first."""
        if self.etags is None:
            return (Expect(scope, path, live=False),) if self.absent else ()
        if self.absent or len(self.etags) != 1:
            return None
        [tag] = self.etags
        version = _SINGLE_LAYER_ETAG.fullmatch(tag)
        return (Expect(scope, path, int(version[1]), live=True),) if version else None


UNCONDITIONAL = WriteCondition()


def parse_condition(if_match: str | None, if_none_match: str | None) -> WriteCondition:
    """Parse the If-Match and If-None-Match headers of a write."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise ValidationError("on a write, If-None-Match may only be *")
    etags = None if if_match is None else parse_entity_tags(if_match)
    return WriteCondition(etags, absent=if_none_match is not None)


def parse_entity_tags(header: str) -> frozenset[str]:
    """Tags of an If-Match or If-None-Match list, with quotes.

    Our tags contain no comma.
    """
    return frozenset([tag.strip() for tag in header.split(",") if tag.strip()])
