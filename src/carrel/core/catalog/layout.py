"""The catalog: how a store looks to those who read files or objects themselves, key by key.

Each kind of key is a class here, which writes a key and reads it back. A plan says what stands
under which key; the same trees give the same plan, to the byte. Nothing of it is read by Carrel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, Path, TimestampMs, digest
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.tree import Blob, Entry, Head, Tree

DEFAULTS: Final = "defaults"
"""What stands in the place of a template's slug for the defaults. No template is called so."""
MANIFEST: Final = Path("manifest.json")
MARKER: Final = Path("_defaults_version")
ITS_OWN: Final = frozenset({MANIFEST, MARKER})
"""Names at the top of a workspace that mean something in this layout, whose readers pass over them:
a file that is called so is left out."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SLUG: Final = "[a-z0-9-]+"
_AGENTS: Final = f"tenants/(?P<tenant>{_SLUG})/agents/"
_FORMS: Final = (
    re.compile(rf"{_AGENTS}(?P<agent>{_SLUG})/workspace/(?P<path>.+)", re.DOTALL),
    re.compile(rf"{_AGENTS}_catalog/(?P<template>{_SLUG})/workspace/(?P<path>.+)", re.DOTALL),
    re.compile(
        rf"{_AGENTS}_catalog/(?P<template>{_SLUG})/workspace-versions/"
        r"(?P<path>.+)@(?P<digest>sha256:[0-9a-f]{64})",
        re.DOTALL,
    ),
)

Plan = Mapping[str, Blob | bytes]
"""What stands under each key: content of the store, or bytes that are made for the catalog."""


class AgentFileKey(Struct, frozen=True):
    """A file of an agent's own, and the manifest of these."""

    tenant: str
    agent: str
    path: Path

    @property
    def text(self) -> str:
        return f"{agent_prefix(self.tenant, self.agent)}{self.path}"


class TemplateFileKey(Struct, frozen=True):
    """A file of a template or of the defaults, and the defaults' version."""

    tenant: str
    template: str
    path: Path

    @property
    def text(self) -> str:
        return f"{template_prefix(self.tenant, self.template)}{self.path}"


class ReviewedFileKey(Struct, frozen=True):
    """What a pinned file was reviewed to be, by its digest."""

    tenant: str
    template: str
    path: Path
    digest: Digest

    @property
    def text(self) -> str:
        versions = f"{prefix_of(self.tenant)}_catalog/{self.template}/workspace-versions/"
        return f"{versions}{self.path}@{self.digest}"


Key = AgentFileKey | TemplateFileKey | ReviewedFileKey


def prefix_of(tenant: str) -> str:
    """What all keys of a tenant begin with, and those of no other."""
    return f"tenants/{tenant}/agents/"


def agent_prefix(tenant: str, agent: str) -> str:
    """What all keys of an agent's own files begin with."""
    return f"{prefix_of(tenant)}{agent}/workspace/"


def template_prefix(tenant: str, template: str) -> str:
    """The same of a template's or the defaults' files, without what was reviewed."""
    return f"{prefix_of(tenant)}_catalog/{template}/workspace/"


def reviewed(plan: Plan) -> Digest:
    """What tells which reviewed files a plan holds: others may want the same of them."""
    keys = sorted(key for key in plan if isinstance(parse(key), ReviewedFileKey))
    return digest("\n".join(keys).encode())


def parse(text: str) -> Key | None:
    """The key that is written so; None for what is none of ours."""
    agent, template, version = (form.fullmatch(text) for form in _FORMS)
    found = agent or template or version
    if found is None:
        return None
    try:
        path = Path(found["path"])
    except ValidationError:
        return None
    key: Key
    if agent:
        key = AgentFileKey(agent["tenant"], agent["agent"], path)
    elif template:
        key = TemplateFileKey(template["tenant"], template["template"], path)
    else:
        assert version
        name = Digest(version["digest"])
        key = ReviewedFileKey(version["tenant"], version["template"], path, name)
    return key if key.text == text else None


class CatalogLayer(Struct, frozen=True):
    """A template with its tree; or the defaults, under their own slug."""

    slug: str
    tree: Tree


class ServedFile(Struct, frozen=True):
    """What an agent is shown in place of what it has stored."""

    content: bytes
    at: TimestampMs


class CatalogAgent(Struct, frozen=True):
    """An agent with its tree, the pins that it was made with, and its template's slug."""

    slug: str
    tree: Tree
    created: TimestampMs
    template: str = DEFAULTS
    pins: Tree | None = None
    shown: Mapping[Path, ServedFile] = {}


def of_layer(tenant: str, classes: FileClassRules, layer: CatalogLayer, seeded: int = 0) -> Plan:
    """A template's or the defaults' own files, those that are pinned also by their digest.

    ``seeded`` is the version of the packaged files that the defaults have had, 0 for none.
    """
    plan: dict[str, Blob | bytes] = {}
    for path, entry in _entries(layer.tree):
        if classes.class_of(path) is FileClass.PINNED:
            plan[ReviewedFileKey(tenant, layer.slug, path, entry.blob.digest).text] = entry.blob
        if path not in ITS_OWN:
            plan[TemplateFileKey(tenant, layer.slug, path).text] = entry.blob
    if seeded:
        plan[TemplateFileKey(tenant, layer.slug, MARKER).text] = str(seeded).encode()
    return plan


def of_agent(tenant: str, classes: FileClassRules, own: CatalogAgent) -> Plan:
    """What an agent was reviewed to have, what it has instead or besides, and a manifest of that.

    A pin that is not overridden is only among what was reviewed.
    """
    plan: dict[str, Blob | bytes] = {}
    for path, pin in _held(classes, own):
        plan[ReviewedFileKey(tenant, own.template, path, pin.digest).text] = pin
    stands: list[Head] = []
    for path, entry in _entries(own.tree):
        managed = classes.class_of(path) is FileClass.MANAGED
        if path not in ITS_OWN and (managed or entry.blob != entry.base):
            newer = own.shown.get(path)
            plan[AgentFileKey(tenant, own.slug, path).text] = newer.content if newer else entry.blob
            stands.append(_newer(own.tree.heads[path], newer))
    plan[AgentFileKey(tenant, own.slug, MANIFEST).text] = manifest(stands, own.created)
    return plan


def _newer(head: Head, shown: ServedFile | None) -> Head:
    if shown is None:
        return head
    blob = Blob(digest(shown.content), len(shown.content))
    return replace(head, at=shown.at, entry=Entry(blob))


def _held(classes: FileClassRules, own: CatalogAgent) -> Iterator[tuple[Path, Blob]]:
    """What each pinned file was reviewed to be: what an agent says itself goes before its pins."""
    first = dict(_entries(own.pins)) if own.pins is not None else {}
    for path, entry in sorted({**first, **dict(_entries(own.tree))}.items()):
        if entry.base is not None and classes.class_of(path) is FileClass.PINNED:
            yield path, entry.base


def left_out(tree: Tree) -> tuple[Path, ...]:
    """The files that have no place in the catalog, since their names mean something else there."""
    return tuple(path for path, _ in _entries(tree) if path in ITS_OWN)


def manifest(heads: list[Head], created: TimestampMs) -> bytes:
    """What stands in an agent's workspace, as of its newest change."""
    files: list[dict[str, Any]] = [
        {
            "path": head.path.text,
            "etag": head.entry.blob.digest,
            "size": head.entry.blob.size,
            "last_modified": when(head.at),
        }
        for head in heads
        if head.entry
    ]
    newest = max((head.at for head in heads), default=created)
    return msgspec.json.encode({"version": 1, "generated_at": when(newest), "files": files})


def when(at: TimestampMs) -> str:
    """A moment as RFC 3339 writes it."""
    shown = _EPOCH + timedelta(milliseconds=at)
    return shown.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _entries(tree: Tree) -> Iterator[tuple[Path, Entry]]:
    for path in sorted(tree.heads):
        if entry := tree.entry(path):
            yield path, entry
