"""Cost limits of GraphQL documents, computed before execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    get_named_type,
    is_list_type,
)
from graphql.type import get_nullable_type

FIRST: Final = "first"
_UNPAGED_LIST_ITEMS: Final = 10
"""Assumed size of a list without `first`."""
_PAGE_SUFFIX: Final = "Page"
_INTROSPECTION_FIELD_COST: Final = 20
"""Cost of an introspection field."""
_MUTATION_COST: Final = 50
"""Cost of a mutation."""
_FIELD_COSTS: Final = {"changes": 100, "diff": 100, "explain": 10, "history": 10}
"""Cost of fields that are resolved one by one."""
_MAX_NESTING: Final = 64
"""Maximum nesting of selections, fragments included."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of one document."""

    depth: int = 12
    """Nesting of fields."""
    cost: int = 10_000
    """Fields, multiplied by the page sizes of the lists around them."""
    characters: int = 64 * 1024
    """Bytes of the document."""
    tokens: int = 4_000
    """Lexical tokens of the document."""
    first: int = 500
    """Items per page."""
    bytes: int = 32 * 1024 * 1024
    """Total content bytes in one response; only contents beyond it are refused."""


LIMITS: Final = QueryLimits()


def limit_exceeded(limit: str, maximum: int, requested: int | None = None) -> GraphQLError:
    """Error that names an exceeded limit."""
    suffix = "" if requested is None else f", requested {requested}"
    extensions = {"limit": limit, "max": maximum}
    return GraphQLError(f"{limit} limit exceeded: maximum {maximum}{suffix}", extensions=extensions)


@dataclass(frozen=True, slots=True)
class QuerySize:
    cost: int = 0
    depth: int = 0


class CostCalculator:
    """Computes cost and depth of one operation; each fragment is computed once."""

    def __init__(
        self,
        schema: GraphQLSchema,
        fragments: Mapping[str, FragmentDefinitionNode],
        variables: Mapping[str, Any],
        limits: QueryLimits,
    ) -> None:
        self._schema, self._fragments, self._variables = schema, fragments, variables
        self._limits = limits
        self._fragment_sizes: dict[str, QuerySize] = {}

    def check(self, operation: OperationDefinitionNode) -> None:
        """Raise GraphQLError if the operation exceeds a limit."""
        root = self._schema.get_root_type(operation.operation)
        assert root is not None, "validation accepts only operations with a root type"
        size = self._selection_size(operation.selection_set, root, 0)
        if size.depth > self._limits.depth:
            raise limit_exceeded("depth", self._limits.depth, size.depth)
        if size.cost > self._limits.cost:
            raise limit_exceeded("cost", self._limits.cost, size.cost)

    def _selection_size(
        self, selection_set: SelectionSetNode, parent: GraphQLNamedType, nesting: int
    ) -> QuerySize:
        if nesting > _MAX_NESTING:
            raise limit_exceeded("depth", self._limits.depth)
        sizes = list(self._sizes(selection_set, parent, nesting + 1))
        cost = sum(size.cost for size in sizes)
        return QuerySize(cost, max((size.depth for size in sizes), default=0))

    def _sizes(
        self, selection_set: SelectionSetNode, parent: GraphQLNamedType, nesting: int
    ) -> Iterator[QuerySize]:
        for node in selection_set.selections:
            if isinstance(node, FieldNode):
                yield self._field_size(node, parent, nesting)
            elif isinstance(node, InlineFragmentNode):
                type_name = node.type_condition and node.type_condition.name.value
                node_type = self._schema.get_type(type_name) if type_name else parent
                yield self._selection_size(node.selection_set, node_type or parent, nesting)
            elif isinstance(node, FragmentSpreadNode):
                yield self._fragment_size(node.name.value, nesting)

    def _fragment_size(self, name: str, nesting: int) -> QuerySize:
        if name not in self._fragment_sizes:
            fragment = self._fragments[name]
            fragment_type = self._schema.get_type(fragment.type_condition.name.value)
            assert fragment_type is not None
            self._fragment_sizes[name] = self._selection_size(
                fragment.selection_set, fragment_type, nesting
            )
        return self._fragment_sizes[name]

    def _field_size(self, node: FieldNode, parent: GraphQLNamedType, nesting: int) -> QuerySize:
        name = node.name.value
        if name == "__typename":
            return QuerySize(1, 1)
        if name.startswith("__"):
            return QuerySize(
                _INTROSPECTION_FIELD_COST * self._count_introspection(node.selection_set, nesting),
                1,
            )
        assert isinstance(parent, GraphQLObjectType)
        field = parent.fields[name]
        multiplier = self._multiplier(node, field, parent)
        field_cost = (
            _MUTATION_COST if parent is self._schema.mutation_type else _FIELD_COSTS.get(name, 1)
        )
        if node.selection_set is None:
            return QuerySize(field_cost, 1)
        inner = self._selection_size(node.selection_set, get_named_type(field.type), nesting)
        return QuerySize(field_cost + multiplier * inner.cost, 1 + inner.depth)

    def _multiplier(self, node: FieldNode, field: GraphQLField, parent: GraphQLObjectType) -> int:
        """Number of items the nested fields may be resolved for."""
        if FIRST in field.args:
            return self._requested_items(node, field)
        paged = parent.name.endswith(_PAGE_SUFFIX)
        return (
            _UNPAGED_LIST_ITEMS if is_list_type(get_nullable_type(field.type)) and not paged else 1
        )

    def _requested_items(self, node: FieldNode, field: GraphQLField) -> int:
        default = field.args[FIRST].default
        value: Any = _int_value(default.literal if default else None)
        for argument in node.arguments or ():
            if argument.name.value == FIRST:
                if isinstance(argument.value, VariableNode):
                    value = self._variables.get(argument.value.name.value, value)
                else:
                    value = _int_value(argument.value)
        requested = value if isinstance(value, int) else self._limits.first
        if not 1 <= requested <= self._limits.first:
            raise limit_exceeded(FIRST, self._limits.first, requested)
        return requested

    def _count_introspection(self, selection_set: SelectionSetNode | None, nesting: int) -> int:
        """Number of introspection fields; they read no stored data."""
        if selection_set is None:
            return 1
        if nesting > _MAX_NESTING:
            raise limit_exceeded("depth", self._limits.depth)
        total = 1
        for node in selection_set.selections:
            if isinstance(node, FragmentSpreadNode):
                total += self._count_fragment(node.name.value, nesting + 1)
            elif isinstance(node, FieldNode | InlineFragmentNode):
                total += self._count_introspection(node.selection_set, nesting + 1)
        return total

    def _count_fragment(self, name: str, nesting: int) -> int:
        if name not in self._fragment_sizes:
            cost = self._count_introspection(self._fragments[name].selection_set, nesting)
            self._fragment_sizes[name] = QuerySize(cost, 1)
        return self._fragment_sizes[name].cost


def _int_value(literal: ValueNode | None) -> int | None:
    return int(literal.value) if isinstance(literal, IntValueNode) else None
