"""The schema, bound to what answers it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from ariadne import make_executable_schema
from graphql import GraphQLSchema
from msgspec import Struct

from carrel.actions.policy import policies
from carrel.server.graphql import (
    agents,
    file_mutations,
    file_types,
    files,
    mutations,
    pins,
    review_mutations,
    runs,
    scalars,
    tenant,
)
from carrel.server.graphql import types as graphql_types
from carrel.server.graphql.arguments import inside

SCHEMA_TEXT: Final = resources.files(__package__).joinpath("schema.graphql").read_text("utf-8")

_ROOMS: Final = (tenant, agents, files, pins, runs, mutations, review_mutations, file_mutations)

MADE_FROM: Final[Mapping[str, type[Struct]]] = {
    "Me": graphql_types.Viewer,
    "Tenant": graphql_types.NamedRecord,
    "Agent": graphql_types.Agent,
    "Template": graphql_types.NamedRecord,
    "OfferedPin": graphql_types.PinOffer,
    "Person": graphql_types.Person,
    "Policy": policies.PolicyModel,
    "Limits": policies.LimitsModel,
    "ClassRule": policies.ClassRuleModel,
    "PinStatusFile": graphql_types.PinStatus,
    "AcceptTemplateUpdateBulkResultEntry": graphql_types.BulkAcceptOutcome,
    "AcceptTemplateUpdateBulkResult": graphql_types.BulkAcceptResult,
    "File": file_types.File,
    "Written": file_types.WriteResult,
    "Version": file_types.VersionRow,
    "Explanation": file_types.Explanation,
    "LayerSays": file_types.LayerEntry,
    "Run": file_types.RunRow,
    "FrozenFile": file_types.File,
    "RunChange": file_types.RunChange,
    "AuditEntry": graphql_types.AuditEntryType,
}
"""The class behind each type; that of every page is views.Page."""


def bound() -> GraphQLSchema:
    types = [each for room in _ROOMS for each in room.TYPES]
    return make_executable_schema(SCHEMA_TEXT, *scalars.SCALARS, *types, convert_names_case=inside)


SCHEMA: Final = bound()
