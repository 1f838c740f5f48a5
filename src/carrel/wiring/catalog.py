"""Builds the catalog's object store and leader lock from the settings."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path as File
from urllib.parse import unquote, urlsplit

from carrel.actions.catalog.export import export
from carrel.actions.catalog.follower import run_catalog
from carrel.actions.catalog.writer import ExportResult
from carrel.actions.progress import ProgressCallback
from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.core.errors import Conflict
from carrel.ports import LeaderLock, ObjectStore
from carrel.settings import Settings, SettingsError
from carrel.wiring.open_store import translate_open_errors
from carrel.wiring.ports import OpenStore

_URL_FORMS = "must be file:///… or s3://bucket/prefix"


def open_object_store(settings: Settings, url: str) -> ObjectStore:
    """Open an object store by URL or directory path. Raises SettingsError."""
    location = _parse_location(url)
    if isinstance(location, File):
        return DirectoryObjectStore(location)
    from carrel.adapters.s3 import S3ObjectStore  # noqa: PLC0415 - optional dependency

    bucket, prefix = location
    return S3ObjectStore.open(
        bucket,
        prefix,
        endpoint=settings.s3_endpoint or None,
        region=settings.s3_region or None,
        access_key=settings.s3_access_key or None,
        secret_key=settings.s3_secret_key or None,
    )


def _parse_location(url: str) -> File | tuple[str, str]:
    """Return a directory, or a bucket with its prefix. Raises SettingsError."""
    parts = urlsplit(url)
    if "\0" not in unquote(url):
        if "://" not in url:
            return File(url).expanduser().absolute()
        if parts.scheme == "file" and parts.path.strip("/") and not parts.netloc:
            return File(unquote(parts.path))
        if parts.scheme == "s3" and parts.netloc:
            return parts.netloc, parts.path.strip("/")
    raise SettingsError(f"the catalog location {_URL_FORMS}")


def is_same_location(first: str, second: str) -> bool:
    """Whether two URLs or paths name the same location."""
    first_location, second_location = _parse_location(first), _parse_location(second)
    if not isinstance(first_location, File) or not isinstance(second_location, File):
        return first_location == second_location
    with suppress(OSError):
        if first_location.samefile(second_location):
            return True
    return first_location.resolve() == second_location.resolve()


def configured_object_store(settings: Settings) -> ObjectStore | None:
    """Return the configured catalog's object store, or None. Raises SettingsError."""
    if not settings.catalog_url:
        return None
    if "://" not in settings.catalog_url:
        raise SettingsError(f"CARREL_CATALOG_URL {_URL_FORMS}")
    return open_object_store(settings, settings.catalog_url)


def leader_lock(settings: Settings, work: str = "catalog") -> LeaderLock:
    """Return the lock that elects the one process that does this work."""
    if file := settings.sqlite_file:
        return FileLeaderLock(file, work)
    from carrel.adapters.postgres.leader_lock import PostgresLeaderLock  # noqa: PLC0415 - optional dependency

    return PostgresLeaderLock(settings.database_url, work)


async def follow_catalog(store: OpenStore, object_store: ObjectStore, stop: asyncio.Event) -> None:
    """Keep the configured catalog up to date until `stop` is set."""
    await run_catalog(store.ports, object_store, leader_lock(store.settings), stop)


async def export_catalog(
    store: OpenStore, url: str, *, only: str | None, adopt: bool, watch: ProgressCallback
) -> ExportResult:
    """Write the catalog to a location once.

    Raises StoreUnavailable for an invalid location, Conflict if a server keeps the catalog there up
    to date.
    """
    with translate_open_errors(store.settings):
        object_store = open_object_store(store.settings, url)
        configured_url = store.settings.catalog_url
        is_shared = bool(configured_url) and await asyncio.to_thread(
            is_same_location, url, configured_url
        )
    if not is_shared:
        return await export(
            store.ports, object_store, tenant_slug=only, adopt=adopt, on_progress=watch
        )
    lock = leader_lock(store.settings)
    if not await lock.try_acquire():
        raise Conflict("a running server already maintains the catalog at this location")
    try:
        return await export(
            store.ports, object_store, tenant_slug=only, adopt=adopt, on_progress=watch
        )
    finally:
        await lock.release()
