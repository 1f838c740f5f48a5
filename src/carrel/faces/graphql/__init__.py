"""The GraphQL face: the same actions, asked for in one document."""

from carrel.faces.graphql.documents import Documents
from carrel.faces.graphql.execution import Asked, execute
from carrel.faces.graphql.limits import LIMITS, Limits
from carrel.faces.graphql.schema import SCHEMA, SCHEMA_TEXT

__all__ = ["LIMITS", "SCHEMA", "SCHEMA_TEXT", "Asked", "Documents", "Limits", "execute"]
