"""Check of all skills of a store, for `carrel doctor`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from msgspec.structs import replace

from carrel.actions.records import iter_records
from carrel.actions.skills.skills import load_skills
from carrel.core.accounts import tenant_from_record
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.template import template_from_record
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.compose import File, compose
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.skills.skill_definition import PROBLEM_MISSING, SKILLS_PREFIX
from carrel.core.store.record import RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
_SAMPLE_VALUES: Final = PlaceholderValues()
"""Placeholders are filled with these, since a layer serves many agents."""


async def check_skills(ports: Ports, findings: FindingList) -> None:
    """Report every invalid SKILL.md of a layer; a folder that another layer completes is fine."""
    async for tenant in iter_records(ports, "", RecordType.TENANT):
        slug = tenant_from_record(tenant).slug
        batch: dict[Scope, str] = {}
        async for scope, name in _iter_layers(ports, tenant.id):
            batch[scope] = f"{name} of {slug}"
            if len(batch) == _BATCH_SIZE:
                await _check_layers(ports, batch, findings)
                batch = {}
        await _check_layers(ports, batch, findings)


async def _iter_layers(ports: Ports, tenant: str) -> AsyncIterator[tuple[Scope, str]]:
    """Yield every layer of a tenant with its name."""
    yield Scope(tenant, ScopeKind.DEFAULTS, ""), "defaults"
    async for record in iter_records(ports, tenant, RecordType.TEMPLATE):
        name = template_from_record(record).slug
        yield Scope(tenant, ScopeKind.TEMPLATE, record.id), f"template {name}"
    async for record in iter_records(ports, tenant, RecordType.AGENT):
        name = agent_from_record(record).slug
        yield Scope(tenant, ScopeKind.AGENT, record.id), f"agent {name}"
    async for record in iter_records(ports, tenant, RecordType.WORKSPACE):
        yield Scope(tenant, ScopeKind.WORKSPACE, record.id), f"workspace {record.id}"


async def _check_layers(ports: Ports, names: dict[Scope, str], findings: FindingList) -> None:
    if not names:
        return
    for tree in await ports.trees.read(tuple(names), prefix=SKILLS_PREFIX):
        for skill in await load_skills(ports, _sample_files(tree)):
            for problem in () if skill.is_damaged else skill.definition.problems:
                if problem != PROBLEM_MISSING:
                    text = f"{skill.definition.path} is invalid: {problem}"
                    findings.warn(names[tree.scope], text)


def _sample_files(tree: Tree) -> dict[Path, File]:
    files = compose((tree,)).files
    return {path: replace(file, variables=_SAMPLE_VALUES) for path, file in files.items()}
