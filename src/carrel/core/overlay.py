"""An agent's files over its template's over the defaults: what is shown, and how it may change.

An entry says it all: a pin is one whose blob equals its base, an override one whose blob differs,
and an update is offered where the base differs from what lies beneath now.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from carrel.core.classes import Classes, ClassRule, FileClass
from carrel.core.compose import File, Layers, Workspace, etag_of, file_etag, offered, resolve
from carrel.core.edit import Condition, Edit
from carrel.core.errors import Forbidden, Missing, Stale
from carrel.core.names import Digest, Kind, Path
from carrel.core.placeholders import Variables
from carrel.core.tree import MARKDOWN, Blob, Entry, Expect, Head, Write

_RULE: Final = "class:"


class Source(StrEnum):
    """Where what is shown comes from."""

    OVERRIDE = "agent-override"
    PINNED_OVERRIDE = "agent-override-pinned"
    TEMPLATE = "template"
    PIN = "template-pinned"
    DEFAULTS = "defaults"


class Pin(Struct, frozen=True):
    """Where an agent stands with one pinned file."""

    path: Path
    pinned: Blob | None
    """What was reviewed; None where nothing was yet."""
    latest: Blob | None
    """What the layers beneath offer now."""
    overridden: bool
    version: int

    @property
    def update_available(self) -> bool:
        return self.latest is not None and self.latest != self.pinned


class Eye(Struct, frozen=True):
    """With whose eyes an agent's workspace is seen: its tenant's classes, its own variables."""

    classes: Classes = Classes()
    variables: Variables = Variables()

    @property
    def key(self) -> str:
        """Changes when anything does that is seen differently through it."""
        rules = [f"{rule.file_class}:{rule.pattern}" for rule in self.classes.rules]
        return "\n".join((self.variables.key, *rules))

    def words(self) -> Mapping[str, str]:
        """All of it as a run keeps it."""
        said = {name: value for name, value in asdict(self.variables).items() if value is not None}
        rules = enumerate(self.classes.rules)
        said |= {f"{_RULE}{at:03}": f"{rule.file_class} {rule.pattern}" for at, rule in rules}
        return said

    @staticmethod
    def claims(name: str) -> bool:
        """Whether a word of this name is the eye's own, and so for nobody else to say."""
        return name in Variables.__struct_fields__ or name.startswith(_RULE)

    @classmethod
    def of(cls, words: Mapping[str, str]) -> Eye:
        """The same again, from what a run has kept."""
        known = Variables.__struct_fields__
        rules = [words[name].partition(" ") for name in sorted(words) if name.startswith(_RULE)]
        classes = tuple(ClassRule(pattern, FileClass(kind)) for kind, _, pattern in rules)
        said = {name: words[name] for name in known if name in words}
        return cls(Classes(classes), Variables(**said))

    def shown(self, path: Path, layers: Layers) -> File | None:
        """What an agent has at a path. A pinned file that was never reviewed is not there."""
        file_class = self.classes.of(path)
        if file_class is FileClass.PINNED:
            return _pinned(path, layers)
        file = resolve(path, layers)
        if file is None:
            return None
        own = file.source.kind is Kind.AGENT
        origin = Source.OVERRIDE if own else Source(file.source.kind)
        if own and file_class is FileClass.MANAGED:
            return replace(file, file_class=file_class, origin=origin)
        etag = f'{file.etag[:-1]}.{self.variables.key}"'
        return replace(
            file, etag=etag, file_class=file_class, origin=origin, variables=self.variables
        )

    def compose(self, layers: Layers) -> Workspace:
        """Everything that an agent has, in order of path."""
        paths = sorted({path for tree in layers for path in tree.heads})
        found = {path: file for path in paths if (file := self.shown(path, layers))}
        return Workspace(found, etag_of(layers))


def _pinned(path: Path, layers: Layers) -> File | None:
    own = layers[0]
    head = own.heads.get(path)
    if head is None or head.entry is None:
        return None
    entry = head.entry
    latest = offered(path, layers[1:])
    upstream = latest if latest is not None and latest != entry.base else None
    tag = file_etag(head.version, own.scope, alone=len(layers) == 1)
    origin = Source.PIN if entry.blob == entry.base else Source.PINNED_OVERRIDE
    return File(head, entry, own.scope, 0, tag, upstream, FileClass.PINNED, origin)


def pin_of(path: Path, layers: Layers) -> Pin:
    head = layers[0].heads.get(path)
    entry = head.entry if head else None
    return Pin(
        path,
        pinned=entry.base if entry else None,
        latest=offered(path, layers[1:]),
        overridden=entry is not None and entry.blob != entry.base,
        version=head.version if head else 0,
    )


class Wanted(Struct, frozen=True):
    """What somebody wants to write."""

    blob: Blob
    type: str = MARKDOWN
    accepted: bool = False
    """They know that the file is pinned."""


def put(layers: Layers, path: Path, wanted: Wanted, eye: Eye, condition: Condition) -> Edit | None:
    """Write an agent's own file; None where that is what it has already, inherited.

    Raises Stale, or Forbidden for a managed file and, unless accepted, for a pinned one.
    """
    file_class = eye.classes.admit(path)
    condition.check(path, eye.shown(path, layers))
    if file_class is FileClass.MANAGED:
        raise Forbidden(f"{path} is managed: it is written from the profile of the paired human")
    if file_class is FileClass.PINNED:
        if not wanted.accepted:
            raise Forbidden(f"{path} is pinned: changing it here needs acceptTemplateUpdate: true")
        return _edit(layers, path, Entry(wanted.blob, _own_base(layers, path), wanted.type))
    beneath = offered(path, layers[1:])
    if wanted.blob == beneath:
        own = layers[0].entry(path)
        return None if own is None else _edit(layers, path, None)
    return _edit(layers, path, Entry(wanted.blob, beneath, wanted.type))


def delete(layers: Layers, path: Path, eye: Eye, condition: Condition) -> Edit:
    """Go back to what is inherited; for a pinned file, to what was reviewed last.

    Raises Stale, Missing where there is nothing of the agent's own, Forbidden for a managed file.
    """
    file_class = eye.classes.admit(path)
    condition.check(path, eye.shown(path, layers))
    if file_class is FileClass.MANAGED:
        raise Forbidden(f"{path} is managed: it is written from the profile of the paired human")
    entry = layers[0].entry(path)
    if entry is None:
        raise Missing(f"there is no {path} here to delete")
    if file_class is not FileClass.PINNED or entry.base is None:
        return _edit(layers, path, None)
    if entry.blob == entry.base:
        raise Missing(f"{path} is as it was reviewed: there is nothing to take back")
    return _edit(layers, path, Entry(entry.base, entry.base, entry.type))


def accept(layers: Layers, path: Path, reviewed: Digest) -> Edit | None:
    """Take what lies beneath as reviewed, and drop what the agent had instead.

    None where that is so already. Raises Missing where there is nothing to take, and Stale where it
    is no longer what was reviewed.
    """
    latest = offered(path, layers[1:])
    if latest is None:
        raise Missing(f"there is no {path} to accept")
    if latest.digest != reviewed:
        version = layers[0].version(path)
        raise Stale(f"{path} has changed since it was reviewed: review it again", version)
    entry = layers[0].entry(path)
    if entry is not None and entry.blob == entry.base == latest:
        return None
    return _edit(layers, path, Entry(latest, latest, _type_beneath(layers, path)))


def pin(layers: Layers, path: Path) -> Edit | None:
    """Hold an agent at what it has now, as its file becomes pinned; None if there is nothing."""
    latest = offered(path, layers[1:])
    entry = layers[0].entry(path)
    if entry is not None:
        return None if entry.base == latest else _edit(layers, path, _rebased(entry, latest))
    if latest is None:
        return None
    return _edit(layers, path, Entry(latest, latest, _type_beneath(layers, path)))


def roll_back(layers: Layers, path: Path, earlier: Head) -> Edit:
    """Go back to what an earlier version of the agent's entry was reviewed to be."""
    base = earlier.entry.base if earlier.entry else None
    if base is None:
        raise Missing(f"version {earlier.version} of {path} was never reviewed")
    assert earlier.entry
    return _edit(layers, path, Entry(base, base, earlier.entry.type))


def _rebased(entry: Entry, base: Blob | None) -> Entry:
    return Entry(entry.blob, base, entry.type)


def _own_base(layers: Layers, path: Path) -> Blob | None:
    entry = layers[0].entry(path)
    return entry.base if entry else None


def _type_beneath(layers: Layers, path: Path) -> str:
    entries = (tree.entry(path) for tree in layers[1:])
    return next((entry.type for entry in entries if entry), MARKDOWN)


def _edit(layers: Layers, path: Path, entry: Entry | None) -> Edit:
    """Everything that was read becomes an expectation."""
    seen = tuple(Expect(tree.scope, path, tree.version(path)) for tree in layers)
    return Edit(seen, Write(layers[0].scope, path, entry))
