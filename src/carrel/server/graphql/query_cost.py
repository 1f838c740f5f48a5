"""How much one document may ask for, reckoned from its text before anything is done."""

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
_SAMPLE: Final = 10
"""What a list counts as that takes no `first`."""
_PAGE: Final = "Page"
_INTROSPECTION: Final = 20
"""What each field of a question about the schema itself counts as."""
_CHANGE: Final = 50
"""What each change counts as."""
_WORK: Final = {"changes": 100, "diff": 100, "explain": 10, "history": 10}
"""What fields count as that are worked out one by one."""
_NESTED: Final = 64
"""Selections within one another, fragments included, however they are written."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    depth: int = 12
    """Fields within one another."""
    cost: int = 10_000
    """Fields, each as often as the lists around it may have items."""
    characters: int = 64 * 1024
    """Bytes of the text."""
    tokens: int = 4_000
    """Words and signs of the text."""
    first: int = 500
    """Items of a page."""
    bytes: int = 32 * 1024 * 1024
    """Of all contents in one answer; those that are too many are refused, not the others."""


LIMITS: Final = QueryLimits()


def exceeded(limit: str, most: int, asked: int | None = None) -> GraphQLError:
    """The error that names a limit."""
    said = "" if asked is None else f", and this asks for {asked}"
    told = {"limit": limit, "max": most}
    return GraphQLError(f"the limit of {limit} is {most}{said}", extensions=told)


@dataclass(frozen=True, slots=True)
class QuerySize:
    cost: int = 0
    depth: int = 0


class CostCalculator:
    """Weighs one operation. A fragment is weighed once, however often it is spread."""

    def __init__(
        self,
        schema: GraphQLSchema,
        fragments: Mapping[str, FragmentDefinitionNode],
        variables: Mapping[str, Any],
        limits: QueryLimits,
    ) -> None:
        self._schema, self._fragments, self._variables = schema, fragments, variables
        self._limits = limits
        self._weighed: dict[str, QuerySize] = {}

    def check(self, operation: OperationDefinitionNode) -> None:
        """Raises GraphQLError where the operation asks for more than it may."""
        root = self._schema.get_root_type(operation.operation)
        assert root is not None, "validation knows every kind of operation that there is"
        size = self._weigh(operation.selection_set, root, 0)
        if size.depth > self._limits.depth:
            raise exceeded("depth", self._limits.depth, size.depth)
        if size.cost > self._limits.cost:
            raise exceeded("cost", self._limits.cost, size.cost)

    def _weigh(self, chosen: SelectionSetNode, parent: GraphQLNamedType, within: int) -> QuerySize:
        if within > _NESTED:
            raise exceeded("depth", self._limits.depth)
        sizes = list(self._sizes(chosen, parent, within + 1))
        cost = sum(size.cost for size in sizes)
        return QuerySize(cost, max((size.depth for size in sizes), default=0))

    def _sizes(
        self, chosen: SelectionSetNode, parent: GraphQLNamedType, within: int
    ) -> Iterator[QuerySize]:
        for one in chosen.selections:
            if isinstance(one, FieldNode):
                yield self._field(one, parent, within)
            elif isinstance(one, InlineFragmentNode):
                named = one.type_condition and one.type_condition.name.value
                kind = self._schema.get_type(named) if named else parent
                yield self._weigh(one.selection_set, kind or parent, within)
            elif isinstance(one, FragmentSpreadNode):
                yield self._spread(one.name.value, within)

    def _spread(self, name: str, within: int) -> QuerySize:
        if name not in self._weighed:
            fragment = self._fragments[name]
            kind = self._schema.get_type(fragment.type_condition.name.value)
            assert kind is not None
            self._weighed[name] = self._weigh(fragment.selection_set, kind, within)
        return self._weighed[name]

    def _field(self, node: FieldNode, parent: GraphQLNamedType, within: int) -> QuerySize:
        name = node.name.value
        if name == "__typename":
            return QuerySize(1, 1)
        if name.startswith("__"):
            return QuerySize(_INTROSPECTION * self._count(node.selection_set, within), 1)
        assert isinstance(parent, GraphQLObjectType)
        field = parent.fields[name]
        times = self._times(node, field, parent)
        own = _CHANGE if parent is self._schema.mutation_type else _WORK.get(name, 1)
        if node.selection_set is None:
            return QuerySize(own, 1)
        inner = self._weigh(node.selection_set, get_named_type(field.type), within)
        return QuerySize(own + times * inner.cost, 1 + inner.depth)

    def _times(self, node: FieldNode, field: GraphQLField, parent: GraphQLObjectType) -> int:
        """How often what is within may come."""
        if FIRST in field.args:
            return self._first(node, field)
        paged = parent.name.endswith(_PAGE)
        return _SAMPLE if is_list_type(get_nullable_type(field.type)) and not paged else 1

    def _first(self, node: FieldNode, field: GraphQLField) -> int:
        unsaid = field.args[FIRST].default
        given: Any = _number(unsaid.literal if unsaid else None)
        for argument in node.arguments or ():
            if argument.name.value == FIRST:
                if isinstance(argument.value, VariableNode):
                    given = self._variables.get(argument.value.name.value, given)
                else:
                    given = _number(argument.value)
        asked = given if isinstance(given, int) else self._limits.first
        if not 1 <= asked <= self._limits.first:
            raise exceeded(FIRST, self._limits.first, asked)
        return asked

    def _count(self, chosen: SelectionSetNode | None, within: int) -> int:
        """How many fields a question about the schema names: it reads nothing that is stored."""
        if chosen is None:
            return 1
        if within > _NESTED:
            raise exceeded("depth", self._limits.depth)
        total = 1
        for one in chosen.selections:
            if isinstance(one, FragmentSpreadNode):
                total += self._counted(one.name.value, within + 1)
            elif isinstance(one, FieldNode | InlineFragmentNode):
                total += self._count(one.selection_set, within + 1)
        return total

    def _counted(self, name: str, within: int) -> int:
        if name not in self._weighed:
            cost = self._count(self._fragments[name].selection_set, within)
            self._weighed[name] = QuerySize(cost, 1)
        return self._weighed[name].cost


def _number(literal: ValueNode | None) -> int | None:
    return int(literal.value) if isinstance(literal, IntValueNode) else None
