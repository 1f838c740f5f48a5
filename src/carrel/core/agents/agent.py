"""What is known of an agent beside its files, and the names under which it is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core.agents.config import config_of
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key

USER_FILES: Final = "user-file"
"""The link under which the agents are listed that have a USER.md of their own."""

DREAMING: Final = "dreaming"
"""The link under which the agents are listed that dream by themselves."""

BLANK: Final[Mapping[str, Any]] = {
    "templateId": None,
    "pins": None,
    "humanPairId": None,
    "isShared": False,
    "ownerId": None,
    "config": {},
    "userFile": False,
}
"""The facts of an agent of which nothing is said."""


def by_template_index(id: str) -> str:
    """The link under which the agents that follow a template are listed."""
    return f"template:{id}"


def by_human_index(id: str) -> str:
    """The link under which the agents are listed that work for a person."""
    return f"human:{id}"


def by_owner_index(id: str) -> str:
    """The link under which the agents are listed whose private items are a person's."""
    return f"owner:{id}"


def agent_fields(agent: Record) -> dict[str, Any]:
    """All that is known of an agent: what its record does not say is as it is for most."""
    return {**BLANK, **agent.body}


def agent_change(tenant: str, id: str, body: Mapping[str, Any], expected: int) -> RecordChange:
    """An agent as it should become, with the names that follow from that.

    What says nothing is not stored: most of a million agents have most facts as they are made.
    """
    index_keys = [by_template_index(body["templateId"])] if body["templateId"] else []
    index_keys += [by_human_index(body["humanPairId"])] if body["humanPairId"] else []
    index_keys += [by_owner_index(body["ownerId"])] if body["ownerId"] else []
    index_keys += [USER_FILES] if body["userFile"] else []
    index_keys += [DREAMING] if config_of(body["config"] or {}).dreaming.enabled else []
    slug = unique_key(tenant, RecordType.AGENT, "slug", body["slug"])
    told = {fact: said for fact, said in body.items() if fact not in BLANK or said != BLANK[fact]}
    return RecordChange(
        tenant,
        RecordType.AGENT,
        id,
        told,
        expected,
        unique_keys=(slug,),
        index_keys=tuple(index_keys),
    )
