"""The demo of `carrel serve --demo`, from the data in carrel/defaults/demo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from typing import Any, Final

import msgspec

from carrel.actions import items
from carrel.actions.accounts import keys, people, secrets, tenants
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.events import webhooks
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.memory import dreams, memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.overlay import stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.actions.sandbox.tool_access import sandbox_from_record
from carrel.actions.sessions import sessions
from carrel.actions.sessions.new_entries import NewEntry
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.accounts import PersonRecord
from carrel.core.identifiers import Path, Stack, TimestampMs
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Audience, RunStatus
from carrel.core.store.record import Record, RecordType
from carrel.core.webhooks import PostResult
from carrel.ports import Clock, Ports

_DIRECTORY: Final = package_files("carrel.defaults") / "demo"
_HOUR_MS: Final = 3_600_000
_CHANNEL: Final = "web"
_RUN_KEYS: Final = ("parent", "replay_of")
"""Fields that name a run by the key of its step."""


async def create_demo(ports: Ports, owner: Record) -> bool:
    """Fill the owner's tenant; False, and no change, if it has agents or templates."""
    for record_type in (RecordType.AGENT, RecordType.TEMPLATE):
        if await ports.records.list(owner.tenant, record_type, limit=1):
            return False
    demo = DemoStore(ports, {"mara": _actor(owner, Role.OWNER)})
    for moment in msgspec.yaml.decode((_DIRECTORY / "demo.yaml").read_bytes())["moments"]:
        demo.ago = round(moment["hours_ago"] * _HOUR_MS)
        for step in moment["steps"]:
            await _apply_step(demo, **step)
    return True


async def _apply_step(demo: DemoStore, do: str, author: str = "mara", **fields: Any) -> None:
    await _STEPS[do](demo, demo.people[author], **fields)


def _actor(person: Record, role: Role) -> Actor:
    return Actor(person.tenant, person.id, role=role, person=person.id)


class EarlierClock:
    """Clock with times in the past; ids and tokens come from the given clock."""

    def __init__(self, clock: Clock, ago: TimestampMs) -> None:
        self._clock, self._ago = clock, ago
        self.new_id, self.new_token = clock.new_id, clock.new_token

    def now(self) -> TimestampMs:
        return self._clock.now() - self._ago


class NoWebhooks:
    """Webhook sender that looks up no address and sends nothing."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        return PostResult(None, "the demo sends nothing")

    async def refusal_reason(self, url: str) -> str | None:
        return None


@dataclass
class DemoStore:
    """Ports with a clock in the past, and records created by earlier steps, by name."""

    now: Ports
    people: dict[str, Actor]
    ago: TimestampMs = 0
    sandboxes: dict[str, Record] = field(default_factory=dict)
    workspaces: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)

    @property
    def ports(self) -> Ports:
        return self.ports_after(0)

    def ports_after(self, milliseconds: TimestampMs) -> Ports:
        clock = EarlierClock(self.now.clock, max(0, self.ago - milliseconds))
        return replace(self.now, clock=clock, webhook_sender=NoWebhooks())

    def person_id(self, key: str | None) -> str | None:
        return self.people[key].name if key else None


async def _update_owner(demo: DemoStore, owner: Actor, **profile: str) -> None:
    await people.patch(demo.ports, owner, owner.name, profile)


async def _add_person(demo: DemoStore, author: Actor, key: str, role: str, **profile: str) -> None:
    record = msgspec.convert({"role": role, **profile}, PersonRecord)
    person = await people.create(demo.ports, author, record)
    demo.people[key] = _actor(person, Role(role))


async def _add_webhook(
    demo: DemoStore, author: Actor, url: str, events: Sequence[str], active: bool
) -> None:
    created = await webhooks.create(demo.ports, author, url, events)
    patch = webhooks.WebhookPatch(active=active)
    await webhooks.update(demo.ports, author, created.webhook.id, patch)


async def _pin_files(demo: DemoStore, author: Actor, paths: Sequence[str], reason: str) -> None:
    rules = tuple(ClassRuleModel(path, FileClass.PINNED) for path in paths)
    await policies.put(demo.ports, author, PolicyModel(classes=rules), reason)


async def _add_agent(
    demo: DemoStore,
    author: Actor,
    human: str | None = None,
    owner: str | None = None,
    **fields: Any,
) -> None:
    human, owner = demo.person_id(human), demo.person_id(owner)
    await agents.create(demo.ports, author, NewAgent(human=human, owner=owner, **fields))


async def _write_template(
    demo: DemoStore, author: Actor, template: str, directory: str, reason: str
) -> None:
    stack = await stacks.template_stack(demo.ports, author, template)
    await _write_files(demo, author, stack, directory, reason)


async def _write_agent(
    demo: DemoStore, author: Actor, agent: str, directory: str, reason: str = ""
) -> None:
    stack = await stacks.agent_stack(demo.ports, author, agent)
    await _write_files(demo, author, stack, directory, reason)


async def _add_workspace(demo: DemoStore, author: Actor, name: str, directory: str) -> None:
    workspace = await workspaces.create(demo.ports, author, {"name": name})
    demo.workspaces[name] = workspace.id
    stack = await stacks.workspace_stack(demo.ports, author, workspace.id)
    await _write_files(demo, author, stack, directory)


async def _write_files(
    demo: DemoStore, author: Actor, stack: Stack, directory: str, reason: str = ""
) -> None:
    options = WriteOptions(reason=reason, accept_template_update=True)
    root = _DIRECTORY.joinpath("files", *directory.split("/"))
    for path, content in sorted(_read_files(root)):
        await files.put(demo.ports, stack, Path(path), content, author, options)


def _read_files(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for child in directory.iterdir():
        if child.is_dir():
            yield from _read_files(child, f"{prefix}{child.name}/")
        else:
            yield prefix + child.name, child.read_bytes()


async def _add_sandbox(demo: DemoStore, author: Actor, **body: Any) -> None:
    demo.sandboxes[body["name"]] = await sandboxes.create(demo.ports, author, body)


async def _attach(
    demo: DemoStore, author: Actor, agent: str, sandbox: str, workspaces: Mapping[str, str]
) -> None:
    attached = [
        {"name": name, "workspaceId": demo.workspaces[workspace]}
        for name, workspace in workspaces.items()
    ]
    config = {"sandbox": demo.sandboxes[sandbox].id, "workspaces": attached}
    await agents.patch(demo.ports, author, agent, {"config": config})


async def _run(
    demo: DemoStore,
    author: Actor,
    key: str = "",
    status: str | None = None,
    seconds: int = 90,
    **fields: Any,
) -> None:
    """Start a run; with a status, end it after that many seconds."""
    fields |= {name: demo.runs[fields[name]] for name in _RUN_KEYS if name in fields}
    run = await runs.start(demo.ports, author, RunRequest(**fields))
    demo.runs[key] = run.id
    if status:
        later = demo.ports_after(seconds * 1000)
        await runs.update(later, author, run.id, status=RunStatus(status))


async def _remember(
    demo: DemoStore, author: Actor, agent: str, texts: Sequence[str], tags: Sequence[str] = ()
) -> None:
    for text in texts:
        await memories.remember(demo.ports, author, agent, NewMemory(text, tags=tuple(tags)))


async def _recall(demo: DemoStore, author: Actor, agent: str, questions: Sequence[str]) -> None:
    for question in questions:
        await memories.recall(demo.ports, author, agent, question)


async def _add_session(
    demo: DemoStore,
    author: Actor,
    agent: str,
    entries: Sequence[Mapping[str, str]],
    closed: bool = False,
) -> None:
    """Start a session with entries; each maps a role to its text."""
    session = await sessions.start(demo.ports, author, agent, plugin=_CHANNEL)
    new = [
        NewEntry(role, text, plugin=_CHANNEL) for entry in entries for role, text in entry.items()
    ]
    await sessions.append(demo.ports, author, agent, session.id, new)
    if closed:
        await sessions.close(demo.ports, author, agent, session.id)


async def _request_approval(
    demo: DemoStore, author: Actor, agent: str, sandbox: str, workspace: str, **fields: Any
) -> None:
    record, box = await agents.get(demo.ports, author, agent), demo.sandboxes[sandbox]
    session = await sessions.start(demo.ports, author, record.id, plugin=_CHANNEL)
    request = ApprovalRequest(
        agent=record.id,
        mode=Audience.MAIN,
        workspace=demo.workspaces[workspace],
        sandbox=box.id,
        sandbox_config=sandbox_from_record(box).config_digest,
        session=session.id,
        **fields,
    )
    await approvals.request_approval(demo.ports, author, request)


def _call(action: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[None]]:
    """Return a step that passes its fields to an action as they are."""

    async def step(demo: DemoStore, author: Actor, **fields: Any) -> None:
        await action(demo.ports, author, **fields)

    return step


async def _add_key(ports: Ports, author: Actor, name: str) -> None:
    await keys.create(ports, author, keys.KeySpec(name, CredentialKind.SERVICE))


_STEPS: Final[Mapping[str, Callable[..., Awaitable[None]]]] = {
    "rename tenant": _call(tenants.rename),
    "update owner": _update_owner,
    "add person": _add_person,
    "add secret": _call(secrets.put),
    "add webhook": _add_webhook,
    "add service key": _call(_add_key),
    "pin files": _pin_files,
    "add template": _call(templates.create),
    "write template": _write_template,
    "add agent": _add_agent,
    "write agent": _write_agent,
    "add sandbox": _add_sandbox,
    "add workspace": _add_workspace,
    "attach": _attach,
    "run": _run,
    "remember": _remember,
    "recall": _recall,
    "talk": _add_session,
    "put item": _call(items.put),
    "publish item": _call(items.publish),
    "dream": _call(dreams.sweep),
    "request approval": _request_approval,
}
