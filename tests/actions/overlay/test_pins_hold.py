"""A guardrail of an agent changes only by a review or an override."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path as File
from tempfile import TemporaryDirectory
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.stores import open_ports
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import bulk_reviews, pin_reviews, stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.access import Actor
from carrel.core.errors import NotFound, Refusal
from carrel.core.identifiers import Path, digest
from carrel.core.overlay.file_classes import FileClass
from carrel.ports import Ports

RULES: Final = Path("GUARDRAILS.md")
AGENTS: Final = ("ada", "bob", "eve")
TEMPLATES: Final = ("sales", "care")


class Model:
    """Expected guardrail of every agent: the last review and the override."""

    def __init__(self, ports: Ports, owner: Actor) -> None:
        self.ports, self.owner = ports, owner
        self.reviewed: dict[str, bytes | None] = {}
        self.overridden: dict[str, bytes] = {}
        self.upstream: dict[str, bytes | None] = {"sales": None, "care": None, "defaults": b"0"}
        self.follows: dict[str, str | None] = {}

    def latest(self, agent: str) -> bytes | None:
        template = self.follows[agent]
        own = self.upstream[template] if template else None
        return own if own is not None else self.upstream["defaults"]

    async def edit(self, layer: str, text: bytes | None) -> None:
        stack = await (
            stacks.defaults_stack(self.ports, self.owner)
            if layer == "defaults"
            else stacks.template_stack(self.ports, self.owner, layer)
        )
        if text is not None:
            await files.put(self.ports, stack, RULES, text, self.owner)
        elif self.upstream[layer] is not None:
            await files.delete(self.ports, stack, RULES, self.owner)
        self.upstream[layer] = text

    async def create_agent(self, agent: str, template: str | None) -> None:
        if agent not in self.follows:
            await agents.create(self.ports, self.owner, NewAgent(agent, agent, template))
            self.follows[agent] = template
            self.reviewed[agent] = self.latest(agent)

    async def move(self, agent: str, template: str | None) -> None:
        if agent in self.follows:
            change = {"template_id": template, "name": f"{agent} of {template}"}
            await agents.patch(self.ports, self.owner, agent, change)
            self.follows[agent] = template

    async def accept(self, agent: str) -> None:
        text = self.latest(agent) if agent in self.follows else None
        if text is not None:
            await pin_reviews.accept(self.ports, self.owner, agent, RULES, digest(text))
            self.reviewed[agent] = text
            self.overridden.pop(agent, None)

    async def accept_all(self, template: str) -> None:
        followers = [agent for agent, followed in self.follows.items() if followed == template]
        text = self.upstream[template] or self.upstream["defaults"]
        if text is None:
            return
        results = await bulk_reviews.accept_for_all(
            self.ports, self.owner, template, RULES, digest(text)
        )
        assert len(results) == len(followers)
        assert not [result for result in results if result.problem]
        for agent in followers:
            self.reviewed[agent] = text
            self.overridden.pop(agent, None)

    async def override(self, agent: str, text: bytes) -> None:
        if agent in self.follows:
            stack = await stacks.agent_stack(self.ports, self.owner, agent)
            await files.put(
                self.ports,
                stack,
                RULES,
                text,
                self.owner,
                WriteOptions(accept_template_update=True),
            )
            self.overridden[agent] = text

    async def revert(self, agent: str) -> None:
        if agent in self.follows:
            stack = await stacks.agent_stack(self.ports, self.owner, agent)
            try:
                await files.delete(self.ports, stack, RULES, self.owner)
            except NotFound:
                assert self.overridden.get(agent, self.reviewed[agent]) == self.reviewed[agent]
            self.overridden.pop(agent, None)

    async def put_policy(self, pinned: bool) -> None:
        rules = (
            ClassRuleModel("SOUL.md", FileClass.PINNED),
            ClassRuleModel("*.md", FileClass.LIVE),
        )
        policy = PolicyModel(classes=rules if pinned else ())
        await policies.put(self.ports, self.owner, policy, "to see")

    async def check(self) -> None:
        for agent in self.follows:
            stack = await stacks.agent_stack(self.ports, self.owner, agent)
            expected = self.overridden.get(agent, self.reviewed[agent])
            try:
                file = await files.get_file(self.ports, stack, RULES)
                content: bytes | None = await files.read_content(self.ports, file)
            except NotFound:
                content = None
            assert content == expected, agent


Step = Callable[[Model], Awaitable[None]]
texts = st.sampled_from([b"1", b"2", b"3"])
agent_names, template_names = st.sampled_from(AGENTS), st.sampled_from(TEMPLATES)
steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda layer, text: lambda model: model.edit(layer, text),
        st.sampled_from([*TEMPLATES, "defaults"]),
        st.none() | texts,
    ),
    st.builds(
        lambda a, t: lambda model: model.create_agent(a, t), agent_names, st.none() | template_names
    ),
    st.builds(lambda a, t: lambda model: model.move(a, t), agent_names, st.none() | template_names),
    st.builds(lambda agent: lambda model: model.accept(agent), agent_names),
    st.builds(lambda template: lambda model: model.accept_all(template), template_names),
    st.builds(lambda a, text: lambda model: model.override(a, text), agent_names, texts),
    st.builds(lambda agent: lambda model: model.revert(agent), agent_names),
    st.builds(lambda pinned: lambda model: model.put_policy(pinned), st.booleans()),
)


@given(st.lists(steps, min_size=3, max_size=20))
@settings(max_examples=30, deadline=None)
def test_a_guardrail_changes_only_by_a_review_or_an_override(history: list[Step]) -> None:
    async def run_history(directory: File) -> None:
        async with open_ports(directory) as ports:
            _, owner = await create_tenant(ports)
            model = Model(ports, owner)
            for template in TEMPLATES:
                await templates.create(ports, owner, template, template)
            await model.edit("defaults", b"0")
            await model.create_agent("ada", "sales")
            for step in history:
                try:
                    await step(model)
                except Refusal as refusal:
                    raise AssertionError(refusal) from refusal
                await model.check()

    with TemporaryDirectory() as directory:
        asyncio.run(run_history(File(directory)))
