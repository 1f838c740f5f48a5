"""Live servers, one on SQLite and one on PostgreSQL and S3, with a tenant for each suite."""

from __future__ import annotations

import asyncio
import base64
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, Final

from tests.support.server_process import COLD, serving
from tests.support.services import databases, service_client
from tests.support.services.s3 import REGION, Bucket

from carrel_client import Client

PLATFORM_TOKEN: Final = f"carrel_platform_of_the_suites_{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A server that a suite can reach."""

    url: str
    store: str

    def create_tenant(self, slug: str) -> str:
        """Create a tenant and return its owner's token."""
        with Client(self.url, PLATFORM_TOKEN) as carrel:
            owner = {"owner_name": "Olive Owner", "owner_email": f"owner@{slug}.example"}
            return carrel.tenants.create(slug, slug, **owner).owner_token


@contextmanager
def run_server(store: str) -> Iterator[LiveServer]:
    """A server on a store, until the end of the block."""
    services = nullcontext() if store == "sqlite" else _services()
    with services, tempfile.TemporaryDirectory(prefix="carrel-compat-") as folder:
        settings: dict[str, Any] = {} if store == "sqlite" else _postgres_and_s3()
        settings["platform_token"] = PLATFORM_TOKEN
        with serving(File(folder), program=COLD, **settings) as server:
            yield LiveServer(server.url, store)


@contextmanager
def _services() -> Iterator[None]:
    daemon = service_client.start_daemon()
    try:
        yield
    finally:
        daemon.release()


def _postgres_and_s3() -> dict[str, str]:
    """Settings of a server on a new database and a new bucket."""
    admin_url, s3_url = service_client.url_of("postgres"), service_client.url_of("s3")
    name = asyncio.run(databases.create(admin_url))
    bucket = Bucket.at(s3_url, f"compat-{secrets.token_hex(4)}")
    bucket.create()
    return {
        "database_url": databases.database_url(admin_url, name),
        "blobs_url": f"s3://{bucket.name}/content",
        "s3_endpoint": bucket.endpoint,
        "s3_region": REGION,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
        "vault_key": base64.b64encode(secrets.token_bytes(32)).decode(),
    }
