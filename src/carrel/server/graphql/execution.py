"""Answering one document: read, weighed, then executed."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isawaitable
from typing import Any, Final

from graphql import (
    GraphQLError,
    OperationDefinitionNode,
    get_variable_values,
)
from graphql import execute as run
from msgspec import Struct

from carrel.core.access import Actor
from carrel.ports import Ports
from carrel.server.graphql.context import ResolverContext
from carrel.server.graphql.document_cache import DocumentCache, ParsedDocument
from carrel.server.graphql.errors import ErrorFormatter, Tell
from carrel.server.graphql.query_cost import LIMITS, CostCalculator, QueryLimits
from carrel.server.graphql.schema import SCHEMA

DOCUMENTS: Final = DocumentCache(SCHEMA, LIMITS)
_MOST_ERRORS: Final = 20


class GraphqlOperation(Struct, frozen=True):
    """What came over the wire."""

    document: str
    variables: Mapping[str, Any]
    operation: str | None = None


async def execute(
    ports: Ports,
    actor: Actor,
    asked: GraphqlOperation,
    tell: Tell,
    documents: DocumentCache = DOCUMENTS,
) -> dict[str, Any]:
    """The answer, as it goes over the wire: without ``data`` where nothing was executed."""
    document = await documents.read(asked.document)
    if document.errors:
        return {"errors": ErrorFormatter.of_request(document.errors)}
    try:
        operation = document.operation(asked.operation)
        wrong = _weighed(document, operation, asked.variables, documents.limits)
    except GraphQLError as error:
        wrong = [error]
    if wrong:
        return {"errors": ErrorFormatter.of_request(wrong)}
    result = run(
        SCHEMA,
        document.tree,
        context_value=ResolverContext(ports, actor, documents.limits.bytes),
        variable_values=dict(asked.variables),
        operation_name=asked.operation,
    )
    found = await result if isawaitable(result) else result
    answer: dict[str, Any] = {"data": found.data}
    return (
        {**answer, "errors": ErrorFormatter(tell).shown(found.errors)} if found.errors else answer
    )


def _weighed(
    document: ParsedDocument,
    operation: OperationDefinitionNode,
    given: Mapping[str, Any],
    limits: QueryLimits,
) -> list[GraphQLError]:
    """What is wrong with the variables. Raises GraphQLError where too much is asked for."""
    found = get_variable_values(
        SCHEMA, operation.variable_definitions or (), dict(given), max_errors=_MOST_ERRORS
    )
    if isinstance(found, list):
        return found
    CostCalculator(SCHEMA, document.fragments, found.coerced, limits).check(operation)
    return []
