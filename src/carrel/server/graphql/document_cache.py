"""Documents, parsed and validated once for as long as they are asked for again and again."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    parse,
    validate,
)
from graphql.validation.rules import overlapping_fields_can_be_merged as merging

from carrel.server.graphql.query_cost import QueryLimits, exceeded

merging.MAX_COMPLEXITY_BUDGET = 50_000
"""Steps of comparing fields of one name with one another: a tenth of a second, not a whole one."""

_MOST_ERRORS: Final = 20
_TOO_LONG: Final = re.compile(r"more than \d+ (tokens|comments)")
_TOO_DEEP: Final = "nested too deeply"
_ROOM: Final = 256 * 1024
"""Characters of all documents that are kept; the tree of a dense one takes a few hundred times as
much."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a text turned out to be: something to be executed, or what is wrong with it."""

    tree: DocumentNode
    errors: tuple[GraphQLError, ...] = ()

    @property
    def fragments(self) -> dict[str, FragmentDefinitionNode]:
        found = self.tree.definitions
        return {one.name.value: one for one in found if isinstance(one, FragmentDefinitionNode)}

    def operation(self, name: str | None) -> OperationDefinitionNode:
        """The one that is meant. Raises GraphQLError."""
        found = [one for one in self.tree.definitions if isinstance(one, OperationDefinitionNode)]
        if name is not None:
            found = [one for one in found if one.name and one.name.value == name]
        if not found:
            raise GraphQLError("the document has no such operation")
        if len(found) > 1:
            raise GraphQLError("the document has several operations: operationName must tell which")
        return found[0]


class DocumentCache:
    """Those of one schema; the one that was asked for longest ago goes first."""

    def __init__(self, schema: GraphQLSchema, limits: QueryLimits, room: int = _ROOM) -> None:
        self._schema, self.limits, self._room = schema, limits, room
        self._kept: OrderedDict[str, ParsedDocument] = OrderedDict()
        self._size = 0

    async def read(self, text: str) -> ParsedDocument:
        """In a thread where it is new: what is wrong with some documents takes long to tell."""
        if len(text) > self.limits.characters or len(text.encode()) > self.limits.characters:
            return ParsedDocument(DocumentNode(), (exceeded("document", self.limits.characters),))
        known = self._kept.get(text)
        if known is not None:
            self._kept.move_to_end(text)
            return known
        return self._keep(text, await asyncio.to_thread(self._read, text))

    def _keep(self, text: str, document: ParsedDocument) -> ParsedDocument:
        if text not in self._kept:
            self._kept[text] = document
            self._size += len(text)
            while self._size > self._room:
                self._size -= len(self._kept.popitem(last=False)[0])
        return document

    def _read(self, text: str) -> ParsedDocument:
        most = self.limits.tokens
        try:
            tree = parse(text, max_lexical_tokens=most, max_comments=most)
            return ParsedDocument(
                tree, tuple(validate(self._schema, tree, max_errors=_MOST_ERRORS))
            )
        except GraphQLError as error:
            return ParsedDocument(DocumentNode(), (self._named(error),))
        except RecursionError:
            return ParsedDocument(DocumentNode(), (exceeded("depth", self.limits.depth),))

    def _named(self, error: GraphQLError) -> GraphQLError:
        """The limit that a text went beyond, where that is what is wrong with it."""
        if _TOO_LONG.search(error.message):
            return exceeded("tokens", self.limits.tokens)
        return exceeded("depth", self.limits.depth) if _TOO_DEEP in error.message else error
