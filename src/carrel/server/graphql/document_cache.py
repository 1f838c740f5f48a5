"""LRU cache of parsed and validated GraphQL documents."""

from __future__ import annotations

import asyncio
import re
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

from carrel.core.lru_cache import LruCache
from carrel.server.graphql.query_cost import QueryLimits, limit_exceeded

merging.MAX_COMPLEXITY_BUDGET = 50_000
"""Comparison steps when validating fields of one name: about 0.1 s instead of 1 s."""

_MAX_ERRORS: Final = 20
_TOO_LONG: Final = re.compile(r"more than \d+ (tokens|comments)")
_TOO_DEEP: Final = "nested too deeply"
_MAX_CACHED_CHARACTERS: Final = 256 * 1024
"""Total characters of cached documents; their trees take some 100 times as much."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A parsed document and its validation errors."""

    tree: DocumentNode
    errors: tuple[GraphQLError, ...] = ()

    @property
    def fragments(self) -> dict[str, FragmentDefinitionNode]:
        definitions = self.tree.definitions
        return {
            node.name.value: node
            for node in definitions
            if isinstance(node, FragmentDefinitionNode)
        }

    def operation(self, name: str | None) -> OperationDefinitionNode:
        """The operation to execute. Raises GraphQLError."""
        operations = [
            node for node in self.tree.definitions if isinstance(node, OperationDefinitionNode)
        ]
        if name is not None:
            operations = [node for node in operations if node.name and node.name.value == name]
        if not operations:
            raise GraphQLError("no such operation in the document")
        if len(operations) > 1:
            raise GraphQLError("the document has several operations; operationName is required")
        return operations[0]


class DocumentCache:
    """Parsed documents of one schema, in an LRU cache."""

    def __init__(
        self,
        schema: GraphQLSchema,
        limits: QueryLimits,
        max_characters: int = _MAX_CACHED_CHARACTERS,
    ) -> None:
        self._schema, self.limits = schema, limits
        self._documents: LruCache[str, ParsedDocument] = LruCache(max_characters)

    async def get_or_parse(self, text: str) -> ParsedDocument:
        """Cached document, or parse it in a thread: validation may take long."""
        if len(text) > self.limits.characters or len(text.encode()) > self.limits.characters:
            return ParsedDocument(
                DocumentNode(), (limit_exceeded("document", self.limits.characters),)
            )
        document = self._documents.get(text)
        if document is None:
            document = await asyncio.to_thread(self._parse, text)
            self._documents.put(text, document, len(text))
        return document

    def _parse(self, text: str) -> ParsedDocument:
        max_tokens = self.limits.tokens
        try:
            tree = parse(text, max_lexical_tokens=max_tokens, max_comments=max_tokens)
            return ParsedDocument(tree, tuple(validate(self._schema, tree, max_errors=_MAX_ERRORS)))
        except GraphQLError as error:
            return ParsedDocument(DocumentNode(), (self._limit_error(error),))
        except RecursionError:
            return ParsedDocument(DocumentNode(), (limit_exceeded("depth", self.limits.depth),))

    def _limit_error(self, error: GraphQLError) -> GraphQLError:
        """Error that names the exceeded limit, if the text exceeded one."""
        if _TOO_LONG.search(error.message):
            return limit_exceeded("tokens", self.limits.tokens)
        return limit_exceeded("depth", self.limits.depth) if _TOO_DEEP in error.message else error
