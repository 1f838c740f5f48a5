"""Executes a GraphQL document: parse, check cost, execute."""

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
from carrel.server.graphql.errors import ErrorFormatter, LogFailure
from carrel.server.graphql.query_cost import CostCalculator, QueryLimits
from carrel.server.graphql.schema import SCHEMA

_MAX_ERRORS: Final = 20


class GraphqlOperation(Struct, frozen=True):
    """A GraphQL request: document, variables and operation name."""

    document: str
    variables: Mapping[str, Any]
    operation: str | None = None


async def execute(
    ports: Ports,
    actor: Actor,
    request: GraphqlOperation,
    log_failure: LogFailure,
    documents: DocumentCache,
) -> dict[str, Any]:
    """Execute a request; the response has no `data` if nothing was executed."""
    document = await documents.get_or_parse(request.document)
    if document.errors:
        return {"errors": ErrorFormatter.format_request_errors(document.errors)}
    try:
        operation = document.operation(request.operation)
        errors = _check_cost(document, operation, request.variables, documents.limits)
    except GraphQLError as error:
        errors = [error]
    if errors:
        return {"errors": ErrorFormatter.format_request_errors(errors)}
    result = run(
        SCHEMA,
        document.tree,
        context_value=ResolverContext(ports, actor, documents.limits.bytes),
        variable_values=dict(request.variables),
        operation_name=request.operation,
    )
    completed = await result if isawaitable(result) else result
    response: dict[str, Any] = {"data": completed.data}
    return (
        {**response, "errors": ErrorFormatter(log_failure).format_errors(completed.errors)}
        if completed.errors
        else response
    )


def _check_cost(
    document: ParsedDocument,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
    limits: QueryLimits,
) -> list[GraphQLError]:
    """Errors of the variables. Raises GraphQLError if the operation exceeds a limit."""
    coercion = get_variable_values(
        SCHEMA, operation.variable_definitions or (), dict(variables), max_errors=_MAX_ERRORS
    )
    if isinstance(coercion, list):
        return coercion
    CostCalculator(SCHEMA, document.fragments, coercion.coerced, limits).check(operation)
    return []
