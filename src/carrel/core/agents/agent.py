"""Agent records: fields, defaults and index keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core.agents.config import config_from_stored
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key

USER_FILE_INDEX: Final = "user-file"
"""Index key of agents that have their own USER.md."""

DREAMING_INDEX: Final = "dreaming"
"""Index key of agents with scheduled dreams."""

DEFAULT_FIELDS: Final[Mapping[str, Any]] = {
    "templateId": None,
    "pins": None,
    "humanPairId": None,
    "isShared": False,
    "ownerId": None,
    "config": {},
    "userFile": False,
}
"""Fields of an agent that are not stored."""


def by_template_index(id: str) -> str:
    """Index key of agents that use a template."""
    return f"template:{id}"


def by_human_index(id: str) -> str:
    """Index key of agents paired with a person."""
    return f"human:{id}"


def by_owner_index(id: str) -> str:
    """Index key of agents whose private items belong to a person."""
    return f"owner:{id}"


def agent_fields(agent: Record) -> dict[str, Any]:
    """All fields of an agent, defaults included."""
    return {**DEFAULT_FIELDS, **agent.body}


def agent_change(tenant: str, id: str, body: Mapping[str, Any], expected: int) -> RecordChange:
    """Record change for an agent, with its unique and index keys.

    Default values are not stored, which keeps records small with very many agents.
    """
    index_keys = [by_template_index(body["templateId"])] if body["templateId"] else []
    index_keys += [by_human_index(body["humanPairId"])] if body["humanPairId"] else []
    index_keys += [by_owner_index(body["ownerId"])] if body["ownerId"] else []
    index_keys += [USER_FILE_INDEX] if body["userFile"] else []
    index_keys += (
        [DREAMING_INDEX] if config_from_stored(body["config"] or {}).dreaming.enabled else []
    )
    slug = unique_key(tenant, RecordType.AGENT, "slug", body["slug"])
    stored_fields = {
        name: value
        for name, value in body.items()
        if name not in DEFAULT_FIELDS or value != DEFAULT_FIELDS[name]
    }
    return RecordChange(
        tenant,
        RecordType.AGENT,
        id,
        stored_fields,
        expected,
        unique_keys=(slug,),
        index_keys=tuple(index_keys),
    )
