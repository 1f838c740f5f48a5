"""REST endpoints, shared by the server and the in-process client."""

from __future__ import annotations

from typing import Final

from carrel.server.http.endpoint import Endpoint
from carrel.server.rest import compare, dry_runs, inbox, overview, purge, search
from carrel.server.rest.accounts import (
    audit,
    keys,
    people,
    policy,
    secrets,
    sign_in,
    tenants,
)
from carrel.server.rest.agents import (
    agents,
    bulk_changes,
    dreams,
    git,
    items,
    memories,
    prompts,
    sessions,
    templates,
    tools,
)
from carrel.server.rest.events import events, webhooks
from carrel.server.rest.files import (
    commits,
    defaults,
    drafts,
    files,
    history,
    impacts,
    overlay_api,
    pin_decisions,
    pins,
    reviews,
    skills,
    version_readers,
)
from carrel.server.rest.memory_stores import memories as store_memories
from carrel.server.rest.memory_stores import stores, versions
from carrel.server.rest.meta import discovery, health, schema_documents
from carrel.server.rest.runs import runs
from carrel.server.rest.sandbox import account_records, approvals

_MODULES: Final = (
    files,
    commits,
    history,
    drafts,
    impacts,
    skills,
    version_readers,
    runs,
    prompts,
    events,
    discovery,
    schema_documents,
    health,
    tenants,
    people,
    keys,
    secrets,
    policy,
    webhooks,
    templates,
    agents,
    bulk_changes,
    pins,
    pin_decisions,
    reviews,
    sessions,
    memories,
    dreams,
    items,
    defaults,
    overlay_api,
    tools,
    account_records,
    stores,
    store_memories,
    versions,
    approvals,
    inbox,
    overview,
    audit,
    sign_in,
    search,
    compare,
    purge,
    git,
    dry_runs,
)
REST_ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    endpoint for module in _MODULES for endpoint in module.ENDPOINTS
)
