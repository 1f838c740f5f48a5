"""Builds the adapters and ports from the settings."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

from carrel.actions.accounts import vault_check
from carrel.adapters.aes_vault import AesGcmVault
from carrel.adapters.blob_cache import CachedBlobs
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.adapters.git import GitDirectory
from carrel.adapters.sqlite import open_store as open_sqlite
from carrel.adapters.system_clock import SystemClock
from carrel.adapters.tokenizers.estimate import EstimateTokens
from carrel.adapters.tokenizers.splintr import SplintrTokens, is_installed
from carrel.core.prompt.token_estimate import ESTIMATE
from carrel.ports import (
    ApprovalSettings,
    CommandSlots,
    HealthCheck,
    LargeBlobStore,
    Ports,
    SemanticIndex,
    StoreMaintenance,
    Tokenizer,
)
from carrel.ports.attempt_limiter import AttemptLimiter
from carrel.ports.command_slots import DEFAULT_SLOTS
from carrel.settings import Settings, SettingsError
from carrel.wiring.lazy_local_sandbox import LOCAL_PROVIDER, LazyLocalSandbox
from carrel.wiring.lazy_webhooks import LazyWebhookSender
from carrel.wiring.sandbox_providers import remote_sandboxes


@dataclass(frozen=True, slots=True)
class OpenStore:
    """An open store with its ports and settings."""

    settings: Settings
    ports: Ports
    maintenance: StoreMaintenance
    objects: LargeBlobStore | None
    store: Any
    """The store's adapter, for its metrics."""


@asynccontextmanager
async def open_ports(
    settings: Settings, *, check_vault_key: bool = True
) -> AsyncIterator[OpenStore]:
    """Open the store and its ports. Raises SettingsError.

    Maintenance commands may skip the check of the vault key.
    """
    settings.data_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    objects = _large_blob_store(settings)
    _refuse_lost_store(settings)
    semantic_index = _semantic_index(settings)
    async with (
        _store(settings, objects) as store,
        LazyWebhookSender(settings.webhooks_private) as webhook_sender,
        LazyLocalSandbox(settings) as local,
    ):
        vault = _vault(settings)  # after the store: a key beside an empty file means a loss
        ports = Ports(
            trees=store.trees,
            blobs=CachedBlobs(store.blobs),
            records=store.records,
            runs=store.runs,
            events=store.events,
            idempotency=store.idempotency,
            deliveries=store.deliveries,
            sessions=store.sessions,
            recalls=store.recalls,
            tallies=store.tallies,
            erasure=store.erasure,
            vault=vault,
            webhook_sender=webhook_sender,
            clock=SystemClock(),
            tokenizer=_tokenizer(settings),
            repositories=GitDirectory(settings.data_directory / "git"),
            transcript_files=DirectoryTranscriptMirror(settings.transcripts_directory),
            semantic_index=semantic_index,
            approvals=_approval_settings(settings),
            run_lease_ms=settings.run_lease_minutes * 60_000,
            health_checks=_health_checks(store.maintenance, objects),
            command_slots=_command_slots(settings),
            attempts=AttemptLimiter(settings.attempts_per_minute),
            sandboxes={LOCAL_PROVIDER: local, **remote_sandboxes(settings)},
        )
        if check_vault_key and not await vault_check.verify_vault_key(ports):
            raise SettingsError("the vault key does not match this store")
        yield OpenStore(settings, ports, store.maintenance, store.objects, store)


def _refuse_lost_store(settings: Settings) -> None:
    """Raise SettingsError if the database is empty although its key was created after it."""
    file, key = settings.sqlite_file, settings.data_directory / "vault.key"
    if file and key.exists() and file.exists() and not file.stat().st_size:
        raise SettingsError(
            f"{file} is empty, but {key.name} exists: the store was lost. Restore a backup into"
            " another directory, or remove both files to start anew"
        )


def _health_checks(
    maintenance: StoreMaintenance, objects: LargeBlobStore | None
) -> Mapping[str, HealthCheck]:
    return {"database": maintenance.ping} | ({objects.component: objects.ping} if objects else {})


def _store(settings: Settings, objects: LargeBlobStore | None) -> AbstractAsyncContextManager[Any]:
    inline = settings.inline_bytes
    if file := settings.sqlite_file:
        return open_sqlite(file, objects=objects, inline=inline)
    from carrel.adapters.postgres import open_store  # noqa: PLC0415 - optional dependency

    return open_store(
        settings.database_url, objects=objects, inline=inline, pool=settings.database_pool
    )


def _large_blob_store(settings: Settings) -> LargeBlobStore | None:
    url = urlsplit(settings.blobs_url)
    if not settings.blobs_url and (database := settings.sqlite_file):
        return DirectoryBlobStore(database.parent / "blobs")
    if not settings.blobs_url or settings.blobs_url == "database":
        return None
    if url.scheme == "file" and url.path:
        return DirectoryBlobStore(File(url.path))
    if url.scheme == "s3" and url.netloc:
        from carrel.adapters.s3 import S3BlobStore  # noqa: PLC0415 - optional dependency

        return S3BlobStore.open(
            url.netloc,
            url.path.strip("/"),
            endpoint=settings.s3_endpoint or None,
            region=settings.s3_region or None,
            access_key=settings.s3_access_key or None,
            secret_key=settings.s3_secret_key or None,
        )
    raise SettingsError("CARREL_BLOBS_URL must be empty, database, file:///… or s3://bucket/prefix")


def _vault(settings: Settings) -> AesGcmVault:
    if settings.vault_key:
        return AesGcmVault.from_text(settings.vault_key)
    return AesGcmVault.from_file(settings.data_directory / "vault.key")


def _command_slots(settings: Settings) -> CommandSlots:
    """Slots of one of the server's processes."""
    total = settings.sandbox_commands or max(DEFAULT_SLOTS, 2 * (os.cpu_count() or 1))
    limit = max(1, total // settings.workers)
    return CommandSlots(limit, settings.sandbox_waiting, settings.sandbox_jobs)


def _approval_settings(settings: Settings) -> ApprovalSettings:
    return ApprovalSettings(
        settings.approval_minutes * 60_000, settings.approval_lease_seconds * 1000
    )


def _tokenizer(settings: Settings) -> Tokenizer:
    if settings.tokenizer == ESTIMATE or not (settings.tokenizer or is_installed()):
        return EstimateTokens()
    if not settings.tokenizer:
        return SplintrTokens()
    tokenizer = SplintrTokens(settings.tokenizer)
    try:
        tokenizer.load()
    except ImportError:
        raise SettingsError("CARREL_TOKENIZER needs the extra `tokens`, or `estimate`") from None
    except ValueError as problem:
        raise SettingsError(f"CARREL_TOKENIZER: {problem}") from None
    return tokenizer


def _semantic_index(settings: Settings) -> SemanticIndex | None:
    if not settings.semantic_model:
        return None
    try:
        from carrel.adapters.model2vec import Model2VecIndex  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingsError("CARREL_SEMANTIC_MODEL needs the extra `semantic`") from None
    try:
        return Model2VecIndex.from_directory(File(settings.semantic_model).expanduser())
    except ValueError as problem:
        raise SettingsError(f"CARREL_SEMANTIC_MODEL: {problem}") from None
