"""The face for programs that hold the store themselves: `carrel.open(…)`."""

from __future__ import annotations

from carrel.actions.prompt.prompts import Counted as PromptBlock
from carrel.actions.prompt.prompts import Shown as Prompt
from carrel.faces.python.account_records import Described, Sandbox, Sandboxes, Workspaces
from carrel.faces.python.agents import Agent, Agents, Template, Templates
from carrel.faces.python.carrel import Carrel
from carrel.faces.python.event_feed import Event, Feed
from carrel.faces.python.files import File, FileRow, Files, Version
from carrel.faces.python.items import Item, ItemRow
from carrel.faces.python.keys import Key, Keys, NewKey
from carrel.faces.python.memories import Dream, Memory
from carrel.faces.python.people import People, Person
from carrel.faces.python.policy import Limits, Policies, Policy
from carrel.faces.python.runs import Difference, Frozen, Run
from carrel.faces.python.secrets import Secret, Secrets
from carrel.faces.python.tenants import NewTenant, Tenant, Tenants
from carrel.faces.python.webhooks import NewWebhook, Webhook, Webhooks
from carrel.faces.python.workspaces import Workspace

__all__ = [
    "Agent",
    "Agents",
    "Carrel",
    "Described",
    "Difference",
    "Dream",
    "Event",
    "Feed",
    "File",
    "FileRow",
    "Files",
    "Frozen",
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
    "Sandbox",
    "Sandboxes",
    "Secret",
    "Secrets",
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
