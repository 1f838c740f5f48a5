"""A world with its REST face and its background work: what a server process runs."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from carrel.actions import credentials, upkeep
from carrel.actions.dispatch import run_dispatch
from carrel.core.access import Actor
from carrel.core.errors import Unauthenticated
from carrel.faces.rest import (
    agents,
    audit,
    discovery,
    events,
    files,
    health,
    history,
    keys,
    people,
    policy,
    runs,
    seam,
    secrets,
    signin,
    templates,
    tenants,
    webhooks,
)
from carrel.faces.rest.app import App, rest
from carrel.faces.rest.endpoint import Endpoint, Headers
from carrel.faces.rest.logs import configure
from carrel.faces.rest.metrics import Metrics
from carrel.ports import World
from carrel.settings import Settings
from carrel.wiring.background import Background
from carrel.wiring.world import Opened, open_world

_NOUNS: Final = (
    files,
    history,
    runs,
    events,
    discovery,
    health,
    tenants,
    people,
    keys,
    secrets,
    policy,
    webhooks,
    templates,
    agents,
    audit,
    signin,
)
PLATFORM: Final = Actor("", "platform", frozenset(), platform=True)


def endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """Everything that this server answers to."""
    shown = _NOUNS + ((seam,) if settings.test_seam else ())
    return tuple(endpoint for noun in shown for endpoint in noun.ENDPOINTS)


def authenticator(world: World, settings: Settings) -> Callable[[Headers], Any]:
    platform = credentials.hash_of(settings.platform_token) if settings.platform_token else ""

    async def authenticate(headers: Headers) -> Actor:
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Unauthenticated(credentials.UNKNOWN)
        token = token.strip()
        if platform and hmac.compare_digest(credentials.hash_of(token), platform):
            return PLATFORM
        return await credentials.authenticate(world, token)

    return authenticate
