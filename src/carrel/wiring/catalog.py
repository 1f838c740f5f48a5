"""From settings to the place where a catalog stands, and to the turn of keeping it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path as File
from urllib.parse import unquote, urlsplit

from carrel.actions.catalog.export import export
from carrel.actions.catalog.follower import run_catalog
from carrel.actions.catalog.writer import ExportResult
from carrel.actions.progress import Watch
from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.core.errors import Conflict
from carrel.ports import LeaderLock, ObjectStore
from carrel.settings import Settings, SettingsError
from carrel.wiring.open_store import translate_open_errors
from carrel.wiring.ports import OpenStore

_FORMS = "must be file:///… or s3://bucket/prefix"


def open_object_store(settings: Settings, url: str) -> ObjectStore:
    """A place by its address; a plain path is a directory. Raises Unusable."""
    place = _place(url)
    if isinstance(place, File):
        return DirectoryObjectStore(place)
    from carrel.adapters.s3 import S3ObjectStore  # noqa: PLC0415 - only where it is used

    bucket, prefix = place
    return S3ObjectStore.open(
        bucket,
        prefix,
        endpoint=settings.s3_endpoint or None,
        region=settings.s3_region or None,
        access_key=settings.s3_access_key or None,
        secret_key=settings.s3_secret_key or None,
    )


def _place(url: str) -> File | tuple[str, str]:
    """A directory, or a bucket and the prefix within it. Raises Unusable."""
    parts = urlsplit(url)
    if "\0" not in unquote(url):
        if "://" not in url:
            return File(url).expanduser().absolute()
        if parts.scheme == "file" and parts.path.strip("/") and not parts.netloc:
            return File(unquote(parts.path))
        if parts.scheme == "s3" and parts.netloc:
            return parts.netloc, parts.path.strip("/")
    raise SettingsError(f"the place of a catalog {_FORMS}")


def is_same_place(one: str, other: str) -> bool:
    """Whether two addresses are of one place, however each is spelt."""
    here, there = _place(one), _place(other)
    if not isinstance(here, File) or not isinstance(there, File):
        return here == there
    with suppress(OSError):
        if here.samefile(there):
            return True
    return here.resolve() == there.resolve()


def configured_object_store(settings: Settings) -> ObjectStore | None:
    """Where the server keeps a catalog, if anywhere. Raises Unusable."""
    if not settings.catalog_url:
        return None
    if "://" not in settings.catalog_url:
        raise SettingsError(f"CARREL_CATALOG_URL {_FORMS}")
    return open_object_store(settings, settings.catalog_url)


def leader_lock(settings: Settings, work: str = "catalog") -> LeaderLock:
    """Which of all processes on this store keeps the catalog, or does another work."""
    if file := settings.sqlite_file:
        return FileLeaderLock(file, work)
    from carrel.adapters.postgres.leader_lock import PostgresLeaderLock  # noqa: PLC0415 - only where it is used

    return PostgresLeaderLock(settings.database_url, work)


async def keep_catalog(opened: OpenStore, object_store: ObjectStore, stop: asyncio.Event) -> None:
    """Keep the catalog of the settings up to date until told to stop."""
    await run_catalog(opened.ports, object_store, leader_lock(opened.settings), stop)


async def export_catalog(
    opened: OpenStore, place: str, *, only: str | None, adopt: bool, watch: Watch
) -> ExportResult:
    """Write the catalog to a place once. Raises Unopenable where that can be no place.

    Raises Taken where a server keeps the catalog there up to date.
    """
    with translate_open_errors(opened.settings):
        object_store = open_object_store(opened.settings, place)
        kept = opened.settings.catalog_url
        shared = bool(kept) and await asyncio.to_thread(is_same_place, place, kept)
    if not shared:
        return await export(opened.ports, object_store, only=only, adopt=adopt, watch=watch)
    turn = leader_lock(opened.settings)
    if not await turn.try_acquire():
        raise Conflict("a server keeps the catalog there up to date already")
    try:
        return await export(opened.ports, object_store, only=only, adopt=adopt, watch=watch)
    finally:
        await turn.release()
