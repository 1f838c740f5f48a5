"""Skills of private agents: who sees which, in lists and by discovery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.server.private_agent import (
    OPEN_TO,
    SECRET,
    Office,
    create_private_agent,
    is_refused,
)
from tests.support.full_app import open_full_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def office(tmp_path: File) -> AsyncIterator[Office]:
    async with open_full_app(tmp_path) as app:
        yield Office(app, await create_private_agent(app))


async def test_members_see_the_inherited_live_skills(office: Office) -> None:
    owner, agent = office.private.callers["tenant owner"], office.private.agent
    roots = {"ours": "/v1/defaults", "mine": f"/v1/agents/{agent}"}
    for name, root in roots.items():
        content = f"---\nname: {name}\ndescription: {SECRET if name == 'mine' else 'it'}\n---\n"
        url = f"{root}/files/skills/{name}"
        body = {"content": content}
        assert (await owner.put(f"{url}/SKILL.md", json=body)).status_code == 200
        await owner.put(f"{url}/x.md", json={"content": name})
    skills, index = f"/v1/agents/{agent}/skills", "/.well-known/agent-skills"
    for caller, client in office.private.callers.items():
        if caller in OPEN_TO:
            expected = {"mine", "ours"}
        elif is_refused(await client.get(f"/v1/agents/{agent}/files")):
            assert is_refused(await client.get(skills)), caller
            assert is_refused(await client.get(f"{index}/index.json?agentId={agent}")), caller
            continue
        else:
            expected = {"ours"}
        listed = await client.get(skills)
        assert {skill["name"] for skill in listed.json()["items"]} == expected, caller
        published = (await client.get(f"{index}/index.json?agentId={agent}")).json()["skills"]
        assert {skill["name"] for skill in published} == expected, caller
        for name in roots:
            archive = await client.get(f"{index}/{name}.zip?agentId={agent}")
            assert archive.status_code == (200 if name in expected else 404), caller
            single = await client.get(f"{index}/{name}/SKILL.md?agentId={agent}")
            assert single.status_code == 404, caller
