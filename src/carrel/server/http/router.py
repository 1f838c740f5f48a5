"""From a request's raw path to what listens there, without looking at every endpoint.

Paths are matched as they came over the wire, so a slash that was percent-encoded belongs to the
value it stands in and never separates segments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar
from urllib.parse import unquote_to_bytes

from carrel.core.errors import ValidationError

T = TypeVar("T")

_PARAMETER: Final = re.compile(r"\{([a-z][A-Za-z0-9_]*)(?:(\.\.\.)\}|\}(\.[a-z]+)?)")
_BROKEN_PERCENT: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(slots=True)
class RouteEntry(Generic[T]):
    """What listens at one template, by method."""

    template: str
    names: tuple[str, ...]
    methods: dict[str, T] = field(default_factory=dict)
    allow: str = ""
    """What an Allow header says."""

    def add(self, method: str, thing: T) -> None:
        self.methods[method] = thing
        if method == "GET":
            self.methods.setdefault("HEAD", thing)
        self.allow = ", ".join(sorted({*self.methods, "OPTIONS"}))

    def params(self, values: Values) -> dict[str, str]:
        """The parameters by name. Raises Malformed for what is not percent-encoded UTF-8."""
        if len(values) == 1:
            return {self.names[0]: decoded(values[0])}
        return {name: decoded(raw) for name, raw in zip(self.names, values, strict=True)}


Values = tuple[bytes, ...]
"""The raw text of each parameter, in the order of the template."""
Found = tuple[RouteEntry[T], Values]
_NONE: Final[Values] = ()
_SHORT: Final = 256
_MOST_KNOWN: Final = 4096


@dataclass(slots=True)
class _CatchAll(Generic[T]):
    """What may follow where a template takes the rest of the path."""

    leaf: RouteEntry[T] | None = None
    suffixes: dict[bytes, RouteEntry[T]] = field(default_factory=dict)

    def match(self, tail: bytes, values: Values) -> Found[T] | None:
        before, _, last = tail.rpartition(b"/")
        leaf = self.suffixes.get(last)
        if leaf is not None and before:
            return leaf, (*values, before)
        if self.leaf is not None and tail:
            return self.leaf, (*values, tail)
        return None


@dataclass(slots=True)
class _Node(Generic[T]):
    literals: dict[bytes, _Node[T]] = field(default_factory=dict)
    endings: dict[bytes, _Node[T]] = field(default_factory=dict)
    """Parameters that something follows in their segment, by that: ``{name}.txt``."""
    parameter: _Node[T] | None = None
    rest: _CatchAll[T] | None = None
    leaf: RouteEntry[T] | None = None

    def catches(self) -> RouteEntry[T] | None:
        """Where one segment more leads that is no literal with a leaf of its own."""
        if self.endings:
            return None
        if self.parameter is not None:
            return self.parameter.leaf
        return None if self.rest is None else self.rest.leaf

    def past(self, ending: str | None) -> _Node[T]:
        """Where a parameter leads, perhaps one that something follows in its segment."""
        if ending:
            return self.endings.setdefault(ending.encode("ascii"), _Node())
        self.parameter = self.parameter or _Node()
        return self.parameter

    def match(self, segments: list[bytes], at: int, values: Values) -> Found[T] | None:
        """A literal beats a parameter and a parameter the rest, but only where it leads on."""
        if at == len(segments):
            return None if self.leaf is None else (self.leaf, values)
        segment = segments[at]
        child = self.literals.get(segment)
        if child is not None and (found := child.match(segments, at + 1, values)):
            return found
        for ending, child in self.endings.items():
            value = segment.removesuffix(ending)
            if (
                value
                and value != segment
                and (found := child.match(segments, at + 1, (*values, value)))
            ):
                return found
        child = self.parameter
        if child is not None and segment:
            found = child.match(segments, at + 1, (*values, segment))
            if found:
                return found
        return None if self.rest is None else self.rest.match(b"/".join(segments[at:]), values)


class Router(Generic[T]):
    """A trie over path segments, with short cuts to where most requests go."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._fixed: dict[bytes, RouteEntry[T]] = {}
        """The leaves of templates without parameters, by the whole path."""
        self._heads: dict[bytes, _Node[T]] = {}
        """The nodes beneath nothing but literals, by the path so far."""
        self._known: dict[bytes, Found[T]] = {}
        """Paths that were asked for lately, and where they lead."""
        self._deepest = 0
        self.leaves: list[RouteEntry[T]] = []

    def add(self, method: str, template: str, thing: T) -> None:
        self._known.clear()
        leaf = self._leaf(template)
        if method in leaf.methods and not (method == "HEAD" and "GET" in leaf.methods):
            raise ValueError(f"{method} {template} is there already")
        leaf.add(method, thing)

    def match(self, raw: bytes) -> Found[T] | None:
        fixed = self._fixed.get(raw)
        if fixed is not None:
            return fixed, ()
        found = self._known.get(raw)
        if found is None:
            found = self._search(raw)
            if found is not None and len(raw) <= _SHORT:
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
                self._known[raw] = found
        return found

    def _search(self, raw: bytes) -> Found[T] | None:
        head, _, last = raw.rpartition(b"/")
        node = self._heads.get(head)
        if node is not None and last and (leaf := node.catches()):
            return leaf, (last,)
        # Past the deepest template the path stays in one piece, so its length costs nothing.
        segments = raw.split(b"/", self._deepest + 1)
        return self._straight(segments) or self._root.match(segments, 1, ())

    def _straight(self, segments: list[bytes]) -> Found[T] | None:
        """What is found by always taking the best way on: nearly everything, and quickly."""
        node, values = self._root, _NONE
        for at in range(1, len(segments)):
            segment = segments[at]
            child = node.literals.get(segment)
            if child is None:
                if node.endings:
                    return None
                child = node.parameter
                if child is None or not segment:
                    rest = node.rest
                    return None if rest is None else rest.match(b"/".join(segments[at:]), values)
                values = (*values, segment)
            node = child
        return None if node.leaf is None else (node.leaf, values)

    def _leaf(self, template: str) -> RouteEntry[T]:
        segments = template.split("/")
        if segments[0] or len(segments) < 2:
            raise ValueError(f"{template} does not start with a slash")
        self._deepest = max(self._deepest, len(segments))
        node = self._root
        names: list[str] = []
        for at, segment in enumerate(segments[1:], 1):
            parameter = _PARAMETER.fullmatch(segment)
            if parameter is None:
                node = node.literals.setdefault(segment.encode("ascii"), _Node())
                if not names:
                    self._heads["/".join(segments[: at + 1]).encode("ascii")] = node
                continue
            names.append(parameter[1])
            if parameter[2]:
                return self._rest_leaf(node, template, segments[at + 1 :], tuple(names))
            node = node.past(parameter[3])
        if node.leaf is None:
            node.leaf = self._new_leaf(template, tuple(names))
            if not names:
                self._fixed[template.encode("ascii")] = node.leaf
        return _same(node.leaf, template)

    def _rest_leaf(
        self, node: _Node[T], template: str, after: list[str], names: tuple[str, ...]
    ) -> RouteEntry[T]:
        if len(after) > 1 or any(_PARAMETER.fullmatch(segment) for segment in after):
            raise ValueError(f"{template}: only one literal may follow the rest of a path")
        node.rest = rest = node.rest or _CatchAll()
        if after:
            leaf = rest.suffixes.get(after[0].encode("ascii"))
            if leaf is None:
                leaf = rest.suffixes[after[0].encode("ascii")] = self._new_leaf(template, names)
        else:
            leaf = rest.leaf = rest.leaf or self._new_leaf(template, names)
        return _same(leaf, template)

    def _new_leaf(self, template: str, names: tuple[str, ...]) -> RouteEntry[T]:
        leaf: RouteEntry[T] = RouteEntry(template, names)
        self.leaves.append(leaf)
        return leaf


def _same(leaf: RouteEntry[T], template: str) -> RouteEntry[T]:
    if leaf.template != template:
        raise ValueError(f"{template} and {leaf.template} name the same place differently")
    return leaf


def decoded(raw: bytes) -> str:
    """The text of a percent-encoded value. Raises Malformed."""
    try:
        if b"%" not in raw:
            return raw.decode()
        if _BROKEN_PERCENT.search(raw):
            raise ValidationError("the path has a % that two hexadecimal digits do not follow")
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise ValidationError("the path is not UTF-8") from None
