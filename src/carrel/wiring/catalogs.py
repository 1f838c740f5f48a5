"""From settings to the place where a catalog stands, and to the turn of keeping it."""

from __future__ import annotations

import asyncio
from pathlib import Path as File
from urllib.parse import unquote, urlsplit

from carrel.actions.catalog_follower import run_catalog
from carrel.actions.catalog_keeper import Exported
from carrel.actions.catalogs import export
from carrel.actions.watching import Watch
from carrel.adapters.folder import FolderDepot
from carrel.adapters.sqlite.turn import FileTurn
from carrel.core.errors import Taken
from carrel.ports import Depot, Turn
from carrel.settings import Settings, Unusable
from carrel.wiring.commands import explained
from carrel.wiring.world import Opened

_FORMS = "must be file:///… or s3://bucket/prefix"


def depot_at(settings: Settings, url: str) -> Depot:
    """A place by its address; a plain path is a directory. Raises Unusable."""
    parts = urlsplit(url)
    if "://" not in url:
        return FolderDepot(File(url).expanduser().absolute())
    if parts.scheme == "file" and parts.path.strip("/") and not parts.netloc:
        return FolderDepot(File(unquote(parts.path)))
    if parts.scheme != "s3" or not parts.netloc:
        raise Unusable(f"the place of a catalog {_FORMS}")
    from carrel.adapters.s3 import S3Depot  # noqa: PLC0415 - only where it is used

    return S3Depot.open(
        parts.netloc,
        parts.path.strip("/"),
        endpoint=settings.s3_endpoint or None,
        region=settings.s3_region or None,
        access_key=settings.s3_access_key or None,
        secret_key=settings.s3_secret_key or None,
    )


def kept_depot(settings: Settings) -> Depot | None:
    """Where the server keeps a catalog, if anywhere. Raises Unusable."""
    if not settings.catalog_url:
        return None
    if "://" not in settings.catalog_url:
        raise Unusable(f"CARREL_CATALOG_URL {_FORMS}")
    return depot_at(settings, settings.catalog_url)


def turn_of(settings: Settings, work: str = "catalog") -> Turn:
    """Which of all processes on this store keeps the catalog, or does another work."""
    if file := settings.sqlite_file:
        return FileTurn(file, work)
    from carrel.adapters.postgres.turn import PostgresTurn  # noqa: PLC0415 - only where it is used

    return PostgresTurn(settings.database_url, work)


async def keep_catalog(opened: Opened, depot: Depot, stop: asyncio.Event) -> None:
    """Keep the catalog of the settings up to date until told to stop."""
    await run_catalog(opened.world, depot, turn_of(opened.settings), stop)


async def export_catalog(
    opened: Opened, place: str, *, only: str | None, adopt: bool, watch: Watch
) -> Exported:
    """Write the catalog to a place once. Raises Unopenable where that can be no place.

    Raises Taken where a server keeps the catalog there up to date.
    """
    with explained(opened.settings):
        depot = depot_at(opened.settings, place)
    if place != opened.settings.catalog_url:
        return await export(opened.world, depot, only=only, adopt=adopt, watch=watch)
    turn = turn_of(opened.settings)
    if not await turn.take():
        raise Taken("a server keeps the catalog there up to date already")
    try:
        return await export(opened.world, depot, only=only, adopt=adopt, watch=watch)
    finally:
        await turn.leave()
