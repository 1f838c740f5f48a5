"""Something to look at: a template, three agents, two people, and traces of a working day."""

from __future__ import annotations

from typing import Final

from carrel.actions import agents, files, memories, people, runs, sessions, stacks, templates
from carrel.actions.agents import NewAgent
from carrel.actions.files import Intent
from carrel.actions.memories import NewMemory
from carrel.actions.people import Profile
from carrel.actions.runs import Start
from carrel.actions.sessions import Said
from carrel.core.access import Actor, Role
from carrel.core.errors import Taken
from carrel.core.names import Path, Stack
from carrel.core.record import Record
from carrel.core.run import Status
from carrel.ports import World

_TEMPLATE: Final = "concierge"
_SOUL: Final = """# SOUL.md

{{AGENT_NAME}} looks after guests: attentive, unhurried, and honest about what is not possible. It
offers one good suggestion rather than five, and remembers what people liked.
"""
_RULES: Final = """# GUARDRAILS.md

- Never give out a guest's room number.
- Ask a person before any booking above 200.
"""
_STRICTER: Final = _RULES + "- Never promise an upgrade.\n"
_MAP: Final = "# AGENTS.md\n\n- `nora` books tables and tickets.\n- `theo` looks after transport.\n"
_FACTS: Final = (
    "Ines drinks her coffee without sugar",
    "Ines prefers rooms on the courtyard side",
    "The tram to the museum leaves every ten minutes",
)
_TALK: Final = (
    ("user", "Could you find us a table for four tonight?"),
    ("assistant", "There is one at eight at the corner place you liked in March. Shall I take it?"),
    ("user", "Yes, please. And no fish, as always."),
)


async def furnish(world: World, owner: Record) -> bool:
    """Put it all into the owner's tenant; False where it is there already."""
    actor = Actor(owner.tenant, owner.id, role=Role.OWNER, person=owner.id)
    try:
        await templates.create(world, actor, _TEMPLATE, "Concierge")
    except Taken:
        return False
    shelf = await stacks.template(world, actor, _TEMPLATE)
    await _write(world, actor, shelf, "SOUL.md", _SOUL)
    await _write(world, actor, shelf, "GUARDRAILS.md", _RULES)
    await _staff(world, actor)
    await _write(world, actor, shelf, "GUARDRAILS.md", _STRICTER, "after the busy season")
    await _day(world, actor)
    return True


async def _write(
    world: World, actor: Actor, stack: Stack, path: str, text: str, why: str = ""
) -> None:
    intent = Intent(why=why)
    await files.put(world, stack, Path(path), text.encode(), actor, intent)


async def _staff(world: World, actor: Actor) -> None:
    guest = Profile("Ines Costa", "ines@example.com", Role.MEMBER, "Guest", "Europe/Lisbon")
    desk = Profile("Tomas Lind", "tomas@example.com", Role.ADMIN, "Front desk")
    ines, _ = [await people.create(world, actor, person) for person in (guest, desk)]
    for slug, name, human in (("marco", "Marco", ines.id), ("nora", "Nora", None)):
        await agents.create(world, actor, NewAgent(slug, name, _TEMPLATE, human=human))
    await agents.create(world, actor, NewAgent("theo", "Theo", _TEMPLATE, is_shared=True))


async def _day(world: World, actor: Actor) -> None:
    """Runs, a conversation and what was learnt, of the first of them."""
    for workflow in ("morning round", "evening round"):
        run = await runs.start(world, actor, Start(workflow, agent="marco"))
        await runs.change(world, actor, run.id, status=Status.COMPLETED)
        await _write(world, actor, await stacks.agent(world, actor, "marco"), "AGENTS.md", _MAP)
    await runs.start(world, actor, Start("transfers", agent="theo"))
    talk = await sessions.start(world, actor, "marco", plugin="web")
    said = [Said(role, text, plugin="web") for role, text in _TALK]
    await sessions.append(world, actor, "marco", talk.id, said)
    for fact in _FACTS:
        await memories.remember(world, actor, "marco", NewMemory(fact))
    for question in ("coffee", "Ines", "which rooms does Ines like"):
        await memories.recall(world, actor, "marco", question)
