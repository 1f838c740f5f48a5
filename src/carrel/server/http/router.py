"""Router: a trie from raw request paths to endpoints.

Paths are matched in their percent-encoded form, so an encoded slash is part of a value and never
separates segments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar
from urllib.parse import unquote_to_bytes

from carrel.core.errors import ValidationError
from carrel.core.lru_cache import LruCache

T = TypeVar("T")

_PARAMETER: Final = re.compile(r"\{([a-z][A-Za-z0-9_]*)(?:(\.\.\.)\}|\}(\.[a-z]+)?)")
_BROKEN_PERCENT: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(slots=True)
class RouteEntry(Generic[T]):
    """Handlers of one path template, by method."""

    template: str
    names: tuple[str, ...]
    methods: dict[str, T] = field(default_factory=dict)
    allow: str = ""
    """Value of the Allow header."""

    def add(self, method: str, handler: T) -> None:
        self.methods[method] = handler
        if method == "GET":
            self.methods.setdefault("HEAD", handler)
        self.allow = ", ".join(sorted({*self.methods, "OPTIONS"}))

    def params(self, values: RawValues) -> dict[str, str]:
        """Decoded path parameters by name. Raises ValidationError."""
        if len(values) == 1:
            return {self.names[0]: decode_segment(values[0])}
        return {name: decode_segment(raw) for name, raw in zip(self.names, values, strict=True)}


RawValues = tuple[bytes, ...]
"""Raw text of each parameter, in template order."""
RouteMatch = tuple[RouteEntry[T], RawValues]
_NO_VALUES: Final[RawValues] = ()
_MAX_CACHED_PATH_BYTES: Final = 256
_MAX_CACHED_PATHS: Final = 4096


@dataclass(slots=True)
class _CatchAll(Generic[T]):
    """Leaves below a `{name...}` parameter, by optional literal suffix."""

    leaf: RouteEntry[T] | None = None
    suffixes: dict[bytes, RouteEntry[T]] = field(default_factory=dict)

    def match(self, tail: bytes, values: RawValues) -> RouteMatch[T] | None:
        head, _, suffix = tail.rpartition(b"/")
        leaf = self.suffixes.get(suffix)
        if leaf is not None and head:
            return leaf, (*values, head)
        if self.leaf is not None and tail:
            return self.leaf, (*values, tail)
        return None


@dataclass(slots=True)
class _Node(Generic[T]):
    literals: dict[bytes, _Node[T]] = field(default_factory=dict)
    parameter_suffixes: dict[bytes, _Node[T]] = field(default_factory=dict)
    """Parameters with a literal suffix in their segment (`{name}.txt`), by suffix."""
    parameter: _Node[T] | None = None
    catch_all: _CatchAll[T] | None = None
    leaf: RouteEntry[T] | None = None

    def single_segment_leaf(self) -> RouteEntry[T] | None:
        """Leaf that any one further segment reaches, or None."""
        if self.parameter_suffixes:
            return None
        if self.parameter is not None:
            return self.parameter.leaf
        return None if self.catch_all is None else self.catch_all.leaf

    def literal_child(self, segment: bytes) -> _Node[T]:
        """Child for a literal segment, created if absent."""
        if segment not in self.literals:
            self.literals[segment] = _Node()
        return self.literals[segment]

    def parameter_child(self, suffix: str | None) -> _Node[T]:
        """Child for a parameter segment, created if absent."""
        if suffix:
            return self.parameter_suffixes.setdefault(suffix.encode("ascii"), _Node())
        self.parameter = self.parameter or _Node()
        return self.parameter

    def match(self, segments: list[bytes], index: int, values: RawValues) -> RouteMatch[T] | None:
        """Match with backtracking: literal before parameter before catch-all."""
        if index == len(segments):
            return None if self.leaf is None else (self.leaf, values)
        segment = segments[index]
        child = self.literals.get(segment)
        if child is not None and (result := child.match(segments, index + 1, values)):
            return result
        for suffix, child in self.parameter_suffixes.items():
            value = segment.removesuffix(suffix)
            if (
                value
                and value != segment
                and (result := child.match(segments, index + 1, (*values, value)))
            ):
                return result
        child = self.parameter
        if child is not None and segment:
            result = child.match(segments, index + 1, (*values, segment))
            if result:
                return result
        return (
            None
            if self.catch_all is None
            else self.catch_all.match(b"/".join(segments[index:]), values)
        )


class Router(Generic[T]):
    """Trie over path segments, with shortcuts and a cache for frequent paths."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._static: dict[bytes, RouteEntry[T]] = {}
        """Leaves of templates without parameters, by path."""
        self._literal_nodes: dict[bytes, _Node[T]] = {}
        """Nodes reached by literals only, by path."""
        self._cache: LruCache[bytes, RouteMatch[T]] = LruCache(_MAX_CACHED_PATHS)
        """Matches of recent paths."""
        self._max_segments = 0
        self.leaves: list[RouteEntry[T]] = []

    def add(self, method: str, template: str, handler: T) -> None:
        self._cache.clear()
        leaf = self._get_or_create_leaf(template)
        if method in leaf.methods and not (method == "HEAD" and "GET" in leaf.methods):
            raise ValueError(f"{method} {template} is already registered")
        leaf.add(method, handler)

    def match(self, raw_path: bytes) -> RouteMatch[T] | None:
        leaf = self._static.get(raw_path)
        if leaf is not None:
            return leaf, ()
        result = self._cache.get(raw_path)
        if result is None:
            result = self._search(raw_path)
            if result is not None and len(raw_path) <= _MAX_CACHED_PATH_BYTES:
                self._cache.put(raw_path, result)
        return result

    def _search(self, raw_path: bytes) -> RouteMatch[T] | None:
        head, _, segment = raw_path.rpartition(b"/")
        node = self._literal_nodes.get(head)
        if node is not None and segment and (leaf := node.single_segment_leaf()):
            return leaf, (segment,)
        # Segments beyond the longest template stay unsplit, so long paths cost nothing extra.
        segments = raw_path.split(b"/", self._max_segments + 1)
        return self._match_greedily(segments) or self._root.match(segments, 1, ())

    def _match_greedily(self, segments: list[bytes]) -> RouteMatch[T] | None:
        """Match without backtracking; None if that may miss a route."""
        node, values = self._root, _NO_VALUES
        for index in range(1, len(segments)):
            segment = segments[index]
            child = node.literals.get(segment)
            if child is None:
                if node.parameter_suffixes:
                    return None
                child = node.parameter
                if child is None or not segment:
                    catch_all = node.catch_all
                    return (
                        None
                        if catch_all is None
                        else catch_all.match(b"/".join(segments[index:]), values)
                    )
                values = (*values, segment)
            node = child
        return None if node.leaf is None else (node.leaf, values)

    def _get_or_create_leaf(self, template: str) -> RouteEntry[T]:
        segments = template.split("/")
        if segments[0] or len(segments) < 2:
            raise ValueError(f"{template} must start with a slash")
        self._max_segments = max(self._max_segments, len(segments))
        node = self._root
        names: list[str] = []
        for index, segment in enumerate(segments[1:], 1):
            parameter = _PARAMETER.fullmatch(segment)
            if parameter is None:
                node = node.literal_child(segment.encode("ascii"))
                if not names:
                    self._literal_nodes["/".join(segments[: index + 1]).encode("ascii")] = node
                continue
            names.append(parameter[1])
            if parameter[2]:
                return self._catch_all_leaf(node, template, segments[index + 1 :], tuple(names))
            node = node.parameter_child(parameter[3])
        if node.leaf is None:
            node.leaf = self._new_leaf(template, tuple(names))
            if not names:
                self._static[template.encode("ascii")] = node.leaf
        return _require_same_template(node.leaf, template)

    def _catch_all_leaf(
        self, node: _Node[T], template: str, trailing: list[str], names: tuple[str, ...]
    ) -> RouteEntry[T]:
        if len(trailing) > 1 or any(_PARAMETER.fullmatch(segment) for segment in trailing):
            raise ValueError(f"{template}: only one literal may follow a catch-all parameter")
        node.catch_all = catch_all = node.catch_all or _CatchAll()
        if trailing:
            leaf = catch_all.suffixes.get(trailing[0].encode("ascii"))
            if leaf is None:
                leaf = catch_all.suffixes[trailing[0].encode("ascii")] = self._new_leaf(
                    template, names
                )
        else:
            leaf = catch_all.leaf = catch_all.leaf or self._new_leaf(template, names)
        return _require_same_template(leaf, template)

    def _new_leaf(self, template: str, names: tuple[str, ...]) -> RouteEntry[T]:
        leaf: RouteEntry[T] = RouteEntry(template, names)
        self.leaves.append(leaf)
        return leaf


def _require_same_template(leaf: RouteEntry[T], template: str) -> RouteEntry[T]:
    if leaf.template != template:
        raise ValueError(
            f"{template} and {leaf.template} name the same path with different parameters"
        )
    return leaf


def decode_segment(raw: bytes) -> str:
    """Decode a percent-encoded value. Raises ValidationError."""
    try:
        if b"%" not in raw:
            return raw.decode()
        if _BROKEN_PERCENT.search(raw):
            raise ValidationError("the path has a % without two hexadecimal digits")
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise ValidationError("the path is not UTF-8") from None
