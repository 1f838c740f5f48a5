"""Something to look at: a small company with people, agents and a week of work behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.actions.accounts import keys, people, secrets, tenants
from carrel.actions.accounts.people import Profile
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.demo import texts as demo_texts
from carrel.actions.demo.activity import DAY, ask, dream, work
from carrel.actions.demo.context import DemoContext
from carrel.actions.demo.texts import DemoAgent
from carrel.actions.events import webhooks
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policies import ClassRuleModel, PolicyModel
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_DREAMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "otto": {"dreaming": {"enabled": True}},
    "wren": {"dreaming": {"enabled": True, "review": True}},
    "ember": {"timezone": "Europe/Stockholm", "allowedDelegates": ["page", "sage"]},
}
_HOOK: Final = "https://hooks.meridian.example/carrel"


async def create_demo(ports: Ports, owner: Record) -> bool:
    """Put it all into the owner's tenant; False where there are agents or templates already."""
    for record_type in (RecordType.AGENT, RecordType.TEMPLATE):
        if await ports.records.list(owner.tenant, record_type, limit=1):
            return False
    mara = Actor(owner.tenant, owner.id, role=Role.OWNER, person=owner.id)
    stage = DemoContext(ports, {"mara": mara}, 9 * DAY)
    await _company(stage)
    await _shelves(stage.earlier(8 * DAY))
    await _staff(stage.earlier(7 * DAY))
    await _own_files(stage.earlier(6 * DAY))
    waiting = await _hands(stage.earlier(6 * DAY))
    await work(stage)
    await _edited(stage.earlier(DAY // 48))
    await dream(stage.earlier(0))
    await ask(stage.earlier(0), *waiting)
    return True


async def _company(stage: DemoContext) -> None:
    ports, mara = stage.ports, stage.person("mara")
    await tenants.rename(ports, mara, demo_texts.TENANT)
    profile = dict(zip(("name", "title", "timezone", "pronouns"), demo_texts.OWNER, strict=True))
    await people.patch(ports, mara, mara.name, profile)
    for name, human in demo_texts.PEOPLE.items():
        made = await people.create(ports, mara, Profile(*human))
        stage.people[name] = Actor(made.tenant, made.id, role=human.role, person=made.id)
    await secrets.put(ports, mara, "billing-api", "mrd-live-7d1f0c2ab94e4a65")
    hook = (await webhooks.create(ports, mara, _HOOK, ["workspace.updated"])).webhook
    await webhooks.update(ports, mara, hook.id, webhooks.WebhookPatch(active=False))
    await keys.create(ports, mara, keys.KeySpec("runtime", CredentialKind.SERVICE))
    rules = (ClassRuleModel("docs/refunds.md", FileClass.PINNED),)
    await policies.put(ports, mara, PolicyModel(classes=rules), "refunds are reviewed")


async def _shelves(stage: DemoContext) -> None:
    ports, mara = stage.ports, stage.person("mara")
    for slug, name in demo_texts.TEMPLATES.items():
        await templates.create(ports, mara, slug, name)
        collection_revision = await stacks.template_stack(ports, mara, slug)
        for path, text in demo_texts.FILES[slug].items():
            await _write(ports, mara, collection_revision, path, text, "first version")


async def _staff(stage: DemoContext) -> None:
    for worker in demo_texts.WORKERS:
        await agents.create(stage.ports, stage.person("mara"), _new(stage, worker))


def _new(stage: DemoContext, worker: DemoAgent) -> NewAgent:
    return NewAgent(
        worker.slug,
        worker.name,
        worker.template,
        human=stage.person(worker.human).name if worker.human else None,
        is_shared=worker.shared,
        owner=stage.person(worker.owner).name if worker.owner else None,
        config=_DREAMS.get(worker.slug),
    )


async def _own_files(stage: DemoContext) -> None:
    ports, tomas = stage.ports, stage.person("tomas")
    for slug, own in demo_texts.OWN.items():
        stack = await stacks.agent_stack(ports, tomas, slug)
        for path, text in own.items():
            await _write(ports, tomas, stack, path, text)
    slug, rules = demo_texts.PINNED_OVERRIDE
    stack = await stacks.agent_stack(ports, tomas, slug)
    await _write(ports, tomas, stack, "GUARDRAILS.md", rules, "tax numbers are for accountants")


async def _hands(stage: DemoContext) -> tuple[Record, Record, str]:
    """A sandbox and two workspaces, and the agent that works with them."""
    ports, mara = stage.ports, stage.person("mara")
    box = {"name": "Editing room", "config": {"permissionMode": "ask", "timeoutSeconds": 30}}
    sandbox = await sandboxes.create(ports, mara, box)
    attached = []
    for name, texts in demo_texts.SHARED_FILES.items():
        made = await workspaces.create(ports, mara, {"name": name})
        stack = await stacks.workspace_stack(ports, mara, made.id)
        for path, text in texts.items():
            await _write(ports, mara, stack, path, text)
        known = name.lower().replace(" ", "-")
        attached.append({"name": known, "workspaceId": made.id})
    config = {"sandbox": sandbox.id, "workspaces": attached}
    page = await agents.patch(ports, mara, "page", {"config": config})
    return page, sandbox, attached[0]["workspaceId"]


async def _edited(stage: DemoContext) -> None:
    """Guardrails that got stricter, and wait for a review with everybody at the support desk."""
    ports, tomas = stage.ports, stage.person("tomas")
    collection_revision = await stacks.template_stack(ports, tomas, "support")
    text, reason = demo_texts.STRICTER, demo_texts.STRICTER_WHY
    await _write(ports, tomas, collection_revision, "GUARDRAILS.md", text, reason)


async def _write(
    ports: Ports, actor: Actor, stack: Stack, path: str, text: str, reason: str = ""
) -> None:
    intent = WriteOptions(reason=reason, accept_template_update=True)
    await files.put(ports, stack, Path(path), text.encode(), actor, intent)
