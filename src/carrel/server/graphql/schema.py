"""The schema, bound to what answers it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from ariadne import make_executable_schema
from graphql import GraphQLSchema
from msgspec import Struct

from carrel.actions.policy import policies
from carrel.server.graphql import agents, files, pins, runs, scalars
from carrel.server.graphql import file_mutations as writing
from carrel.server.graphql import file_types as file_views
from carrel.server.graphql import mutations as changing
from carrel.server.graphql import review_mutations as reviewing
from carrel.server.graphql import tenant as desk
from carrel.server.graphql import types as views
from carrel.server.graphql.arguments import inside

SCHEMA_TEXT: Final = resources.files(__package__).joinpath("schema.graphql").read_text("utf-8")

_ROOMS: Final = (desk, agents, files, pins, runs, changing, reviewing, writing)

MADE_FROM: Final[Mapping[str, type[Struct]]] = {
    "Me": views.Viewer,
    "Tenant": views.NamedRecord,
    "Agent": views.Agent,
    "Template": views.NamedRecord,
    "OfferedPin": views.PinOffer,
    "Person": views.Person,
    "Policy": policies.PolicyModel,
    "Limits": policies.LimitsModel,
    "ClassRule": policies.ClassRuleModel,
    "PinStatusFile": views.PinStatus,
    "AcceptTemplateUpdateBulkResultEntry": views.BulkAcceptOutcome,
    "AcceptTemplateUpdateBulkResult": views.BulkAcceptResult,
    "File": file_views.File,
    "Written": file_views.WriteResult,
    "Version": file_views.VersionRow,
    "Explanation": file_views.Explanation,
    "LayerSays": file_views.LayerEntry,
    "Run": file_views.RunRow,
    "FrozenFile": file_views.File,
    "RunChange": file_views.RunChange,
    "AuditEntry": views.AuditEntryType,
}
"""The class behind each type; that of every page is views.Page."""


def bound() -> GraphQLSchema:
    types = [each for room in _ROOMS for each in room.TYPES]
    return make_executable_schema(SCHEMA_TEXT, *scalars.SCALARS, *types, convert_names_case=inside)


SCHEMA: Final = bound()
