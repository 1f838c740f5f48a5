"""The standard tests of sandbox backends, in a workspace of an agent."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_tests.integration_tests import SandboxIntegrationTests

from carrel_client import Client
from carrel_client.deepagents import CarrelSandbox


class TestCarrelSandbox(SandboxIntegrationTests):
    @property
    def sandbox_root_dir(self) -> str:
        return "/workspace/tests"

    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[SandboxBackendProtocol]:
        with Client(os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]) as client:
            slug = f"a{secrets.token_hex(4)}"
            config = {"permissionMode": "bypass", "outputLimitBytes": 262144}
            sandbox = client.sandboxes.create("standard tests", config)
            workspace = client.workspaces.create("standard tests")
            attached = [{"name": "tests", "workspaceId": workspace.id}]
            client.agents.create(slug, config={"sandbox": sandbox.id, "workspaces": attached})
            yield CarrelSandbox(client, slug, workspace.id)
