"""The schema is whole: every field is described, and every field has something to answer it."""

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
SEED_CODES = {"BAD_USER_INPUT", "NOT_FOUND", "FORBIDDEN", "UNAUTHORIZED", "CONFLICT"}


def told_of(name: str) -> Iterator[tuple[str, Any]]:
    """A type and all that is in it, by name."""
    kind = OURS[name]
    yield name, kind
    for field, told in getattr(kind, "fields", {}).items():
        yield f"{name}.{field}", told
        for argument, known in getattr(told, "args", {}).items():
            yield f"{name}.{field}({argument})", known
    for value, known in getattr(kind, "values", {}).items():
        yield f"{name}.{value}", known


@pytest.mark.parametrize("name", OURS)
def test_everything_in_it_has_a_description(name: str) -> None:
    assert [each for each, told in told_of(name) if not told.description] == []


@pytest.mark.parametrize("name", OBJECTS)
def test_every_field_has_a_resolver_or_an_attribute(name: str) -> None:
    resolved = {
        field
        for field, told in OBJECTS[name].fields.items()
        if told.resolve is not None and "resolver" not in told.resolve.__qualname__
    }
    if name in {"Query", "Mutation"}:
        assert set(OBJECTS[name].fields) == resolved
        return
    source = types.PageType if name.endswith("Page") else TYPE_CLASSES[name]
    known = set(source.__struct_fields__)
    for field in OBJECTS[name].fields.keys() - resolved:
        asked = "file_class" if field == "class" else to_snake_case(field)
        assert asked in known, field


def test_no_class_is_named_for_a_type_that_is_not_there() -> None:
    pages = {name for name in OBJECTS if name.endswith("Page")}
    assert set(TYPE_CLASSES) == OBJECTS.keys() - pages - {"Query", "Mutation"}


def test_it_can_be_bound_again_and_says_the_same() -> None:
    assert print_schema(build_schema()) == print_schema(SCHEMA)
    assert "type Query" in SCHEMA_TEXT


def test_no_refusal_is_without_a_code() -> None:
    assert set(CODES) == set(every_refusal())
    assert set(CODES.values()) == SEED_CODES


SEED = """
agentPinStatus(agentId: ID!, includeNested: Boolean! = false): [PinStatusFile!]!
acceptTemplateUpdate(agentId: ID!, filename: String!, idempotencyKey: String, latestSha: String): \
Agent!
createAgentFromTemplate(input: CreateAgentFromTemplateInput!): Agent!
updateAgent(id: ID!, input: UpdateAgentInput!): Agent!
updateUserProfile(userId: ID!, input: UpdateUserProfileInput!): Person!
acceptTemplateUpdateBulk(templateId: ID!, filename: String!, tenantId: ID!, latestSha: String): \
AcceptTemplateUpdateBulkResult!
"""


@pytest.mark.parametrize("line", SEED.strip().splitlines())
def test_the_operations_have_the_arguments_they_always_had(line: str) -> None:
    name, _, rest = line.partition("(")
    given, _, gives = rest.rpartition("): ")
    root = "Query" if name == "agentPinStatus" else "Mutation"
    field = OBJECTS[root].fields[name]
    assert str(field.type) == gives
    told = [argument.partition(" = ")[0] for argument in given.split(", ")]
    assert [f"{one}: {field.args[one].type}" for one in field.args] == told


def test_the_types_have_the_fields_they_always_had() -> None:
    def fields(name: str) -> dict[str, str]:
        return {field: str(told.type) for field, told in OBJECTS[name].fields.items()}

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
