"""Prompts with damaged content: refused for policy, else reported."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.stores import overwrite_content
from tests.support.tenants import create_tenant

from carrel.actions.prompt import lint, prompts
from carrel.core.identifiers import digest
from carrel.core.outages import CorruptContent
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
SOUL, RULES = b"{{AGENT_NAME}} is brisk", b"be good"


async def test_damaged_content_is_reported_and_for_policy_refused(
    ports: Ports, tmp_path: File
) -> None:
    _, owner = await create_tenant(ports)
    await OverlayTenant(ports, owner).open()
    intact = await prompts.load_agent_prompt(ports, owner, "marco")

    overwrite_content(tmp_path, digest(SOUL), b"other")
    prompt = await prompts.load_agent_prompt(ports, owner, "marco")
    [soul] = [block for block in prompt.blocks if block.path == "SOUL.md"]
    assert (soul.kept, soul.version, soul.chars) == ("left out", 1, 0)
    assert soul.reason
    assert not prompt.is_cacheable
    assert "# SOUL" not in prompt.text
    assert "# GUARDRAILS\nbe good" in prompt.text
    flaws = [(flaw.rule, flaw.path) for flaw in await lint.lint_agent(ports, owner, "marco")]
    assert ("unreadable", "SOUL.md") in flaws

    overwrite_content(tmp_path, digest(RULES), b"be goof")
    with pytest.raises(CorruptContent, match=r"GUARDRAILS\.md is required and could not be loaded"):
        await prompts.load_agent_prompt(ports, owner, "marco")
    flaws = [(flaw.rule, flaw.path) for flaw in await lint.lint_agent(ports, owner, "marco")]
    assert ("refused", "GUARDRAILS.md") in flaws

    overwrite_content(tmp_path, digest(SOUL), SOUL)
    overwrite_content(tmp_path, digest(RULES), RULES)
    assert await prompts.load_agent_prompt(ports, owner, "marco") == intact
