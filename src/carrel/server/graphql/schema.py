"""Executable schema: schema.graphql bound to the resolvers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from ariadne import make_executable_schema
from graphql import GraphQLSchema
from msgspec import Struct

from carrel.actions.policy import policies, policy_models
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
from carrel.server.graphql.arguments import to_snake_case

SCHEMA_TEXT: Final = resources.files(__package__).joinpath("schema.graphql").read_text("utf-8")

_RESOLVER_MODULES: Final = (
    tenant,
    agents,
    files,
    pins,
    runs,
    mutations,
    review_mutations,
    file_mutations,
)

TYPE_CLASSES: Final[Mapping[str, type[Struct]]] = {
    "Me": graphql_types.ViewerType,
    "Tenant": graphql_types.NamedRecordType,
    "Agent": graphql_types.AgentType,
    "Template": graphql_types.NamedRecordType,
    "OfferedPin": graphql_types.PinOfferType,
    "Person": graphql_types.PersonType,
    "Policy": policies.SavedPolicy,
    "Limits": policy_models.LimitsModel,
    "ClassRule": policy_models.ClassRuleModel,
    "PinStatusFile": graphql_types.PinStatusType,
    "AcceptTemplateUpdateBulkResultEntry": graphql_types.BulkOutcomeType,
    "RollBackUpdateBulkResultEntry": graphql_types.BulkOutcomeType,
    "RollBackUpdateBulkResult": graphql_types.BulkRollBackResultType,
    "AcceptTemplateUpdateBulkResult": graphql_types.BulkAcceptResultType,
    "File": file_types.FileType,
    "Skill": file_types.SkillType,
    "Written": file_types.WriteResultType,
    "CommitResult": file_types.CommitResultType,
    "ChangedFile": file_types.ChangedFileType,
    "Version": file_types.VersionType,
    "Explanation": file_types.ExplanationType,
    "LayerSays": file_types.LayerEntryType,
    "Run": file_types.RunType,
    "FrozenFile": file_types.FileType,
    "RunChange": file_types.RunChangeType,
    "AuditEntry": graphql_types.AuditEntryType,
    "AuditKey": graphql_types.AuditKeyType,
}
"""Class of each GraphQL type; every page type uses PageType."""


def build_schema() -> GraphQLSchema:
    types = [bindable for module in _RESOLVER_MODULES for bindable in module.TYPES]
    return make_executable_schema(
        SCHEMA_TEXT, *scalars.SCALARS, *types, convert_names_case=to_snake_case
    )


SCHEMA: Final = build_schema()
