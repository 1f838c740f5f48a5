"""The GraphQL face: the same actions, asked for in one document."""

from carrel.faces.graphql.execution import Asked, execute
from carrel.faces.graphql.schema import SCHEMA_TEXT

__all__ = ["SCHEMA_TEXT", "Asked", "execute"]
