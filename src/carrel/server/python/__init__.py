"""The face for programs that hold the store themselves: `carrel.open(…)`."""

from __future__ import annotations

from carrel.actions.prompt.prompts import AssembledPrompt as Prompt
from carrel.actions.prompt.prompts import BlockTokens as PromptBlock
from carrel.server.python.account_records import Sandbox, Sandboxes, SharedWorkspace, Workspaces
from carrel.server.python.agents import Agent, Agents, Template, Templates
from carrel.server.python.carrel import Carrel
from carrel.server.python.event_feed import Event, EventStream
from carrel.server.python.files import File, FileRow, Files, Version
from carrel.server.python.items import Item, ItemRow
from carrel.server.python.keys import Key, Keys, NewKey
from carrel.server.python.memories import Dream, Memory
from carrel.server.python.people import People, Person
from carrel.server.python.policy import Limits, Policies, Policy
from carrel.server.python.runs import Difference, Run, RunWorkspace
from carrel.server.python.secrets import Secret, Secrets
from carrel.server.python.tenants import NewTenant, Tenant, Tenants
from carrel.server.python.webhooks import NewWebhook, Webhook, Webhooks
from carrel.server.python.workspaces import Workspace

__all__ = [
    "Agent",
    "Agents",
    "Carrel",
    "Difference",
    "Dream",
    "Event",
    "EventStream",
    "File",
    "FileRow",
    "Files",
    "Item",
    "ItemRow",
    "Key",
    "Keys",
    "Limits",
    "Memory",
    "NewKey",
    "NewTenant",
    "NewWebhook",
    "People",
    "Person",
    "Policies",
    "Policy",
    "Prompt",
    "PromptBlock",
    "Run",
    "RunWorkspace",
    "Sandbox",
    "Sandboxes",
    "Secret",
    "Secrets",
    "SharedWorkspace",
    "Template",
    "Templates",
    "Tenant",
    "Tenants",
    "Version",
    "Webhook",
    "Webhooks",
    "Workspace",
    "Workspaces",
]
