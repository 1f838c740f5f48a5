"""The schema is complete: descriptions, resolvers and stable signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from graphql import GraphQLObjectType, print_schema
from tests.architecture.test_architecture import every_refusal

from carrel.server.graphql import SCHEMA_TEXT, types
from carrel.server.graphql.arguments import to_snake_case
from carrel.server.graphql.errors import CODES
from carrel.server.graphql.schema import SCHEMA, TYPE_CLASSES, build_schema

OURS = {name: kind for name, kind in SCHEMA.type_map.items() if not name.startswith("__")}
OBJECTS = {name: kind for name, kind in OURS.items() if isinstance(kind, GraphQLObjectType)}
SPECIFIED_CODES = {"BAD_USER_INPUT", "NOT_FOUND", "FORBIDDEN", "UNAUTHORIZED", "CONFLICT"}


def list_parts(name: str) -> Iterator[tuple[str, Any]]:
    """A type and its fields, arguments and values, by name."""
    kind = OURS[name]
    yield name, kind
    for field, definition in getattr(kind, "fields", {}).items():
        yield f"{name}.{field}", definition
        for argument, member in getattr(definition, "args", {}).items():
            yield f"{name}.{field}({argument})", member
    for value, member in getattr(kind, "values", {}).items():
        yield f"{name}.{value}", member


@pytest.mark.parametrize("name", OURS)
def test_every_part_of_the_schema_has_a_description(name: str) -> None:
    assert [path for path, part in list_parts(name) if not part.description] == []


@pytest.mark.parametrize("name", OBJECTS)
def test_every_field_has_a_resolver_or_an_attribute(name: str) -> None:
    resolved = {
        field
        for field, definition in OBJECTS[name].fields.items()
        if definition.resolve is not None and "resolver" not in definition.resolve.__qualname__
    }
    if name in {"Query", "Mutation"}:
        assert set(OBJECTS[name].fields) == resolved
        return
    source = types.PageType if name.endswith("Page") else TYPE_CLASSES[name]
    attributes = set(source.__struct_fields__)
    for field in OBJECTS[name].fields.keys() - resolved:
        attribute = "file_class" if field == "class" else to_snake_case(field)
        assert attribute in attributes, field


def test_every_type_class_belongs_to_a_type() -> None:
    pages = {name for name in OBJECTS if name.endswith("Page")}
    assert set(TYPE_CLASSES) == OBJECTS.keys() - pages - {"Query", "Mutation"}


def test_building_the_schema_twice_gives_the_same_text() -> None:
    assert print_schema(build_schema()) == print_schema(SCHEMA)
    assert "type Query" in SCHEMA_TEXT


def test_every_refusal_has_a_code() -> None:
    assert set(CODES) == set(every_refusal())
    assert set(CODES.values()) == SPECIFIED_CODES


SPECIFIED = """
agentPinStatus(agentId: ID!, includeNested: Boolean! = false): [PinStatusFile!]!
acceptTemplateUpdate(agentId: ID!, filename: String!, idempotencyKey: String, latestSha: String): \
Agent!
createAgentFromTemplate(input: CreateAgentFromTemplateInput!): Agent!
updateAgent(id: ID!, input: UpdateAgentInput!): Agent!
updateUserProfile(userId: ID!, input: UpdateUserProfileInput!): Person!
acceptTemplateUpdateBulk(templateId: ID!, filename: String!, tenantId: ID!, latestSha: String): \
AcceptTemplateUpdateBulkResult!
"""


@pytest.mark.parametrize("line", SPECIFIED.strip().splitlines())
def test_the_specified_operations_keep_their_arguments(line: str) -> None:
    name, _, rest = line.partition("(")
    arguments, _, result_type = rest.rpartition("): ")
    root = "Query" if name == "agentPinStatus" else "Mutation"
    field = OBJECTS[root].fields[name]
    assert str(field.type) == result_type
    expected = [argument.partition(" = ")[0] for argument in arguments.split(", ")]
    assert [
        f"{argument_name}: {field.args[argument_name].type}" for argument_name in field.args
    ] == expected


def test_the_specified_types_keep_their_fields() -> None:
    def fields(name: str) -> dict[str, str]:
        return {field: str(definition.type) for field, definition in OBJECTS[name].fields.items()}

    assert {
        "filename": "String!",
        "pinnedSha": "String",
        "latestSha": "String",
        "updateAvailable": "Boolean!",
        "pinnedContent": "String",
        "latestContent": "String",
        "path": "String!",
        "folderPath": "String",
    }.items() <= fields("PinStatusFile").items()
    assert fields("AcceptTemplateUpdateBulkResultEntry") == {
        "agentId": "ID!",
        "success": "Boolean!",
        "error": "String",
    }
    assert fields("AcceptTemplateUpdateBulkResult") == {
        "accepted": "Int!",
        "failed": "Int!",
        "results": "[AcceptTemplateUpdateBulkResultEntry!]!",
    }
    assert {"id", "tenantId", "name", "slug", "humanPairId", "humanPair", "templateId"} <= set(
        fields("Agent")
    )
