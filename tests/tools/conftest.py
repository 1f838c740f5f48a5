"""Fixtures of the tool tests."""

from __future__ import annotations

import pytest
from tests.actions.conftest import anywhere
from tests.support.shell_commands import replace_bash_tool
from tests.support.tenant_fixture import ApprovalTenant, create_approval_tenant

from carrel.ports import Ports

__all__ = ["anywhere"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tenant(anywhere: Ports, monkeypatch: pytest.MonkeyPatch) -> ApprovalTenant:
    """An agent whose commands need approval, on every store."""
    return await create_approval_tenant(anywhere, replace_bash_tool(monkeypatch))
