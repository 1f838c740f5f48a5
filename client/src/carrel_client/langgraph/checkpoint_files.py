"""The checkpoints of all threads in files, in steps for every driver."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from carrel_client.drivers import Steps, steps_of
from carrel_client.errors import NotFound, WorkspaceConflict
from carrel_client.file_changes import DeleteFile, FileChange, PutFile
from carrel_client.file_models import File, FileRow
from carrel_client.files import Files
from carrel_client.langgraph.checkpoint_documents import (
    SUFFIX,
    CheckpointKey,
    StoredCheckpoint,
    StoredWrite,
    checkpoint_from_text,
    checkpoint_path,
    checkpoint_stem,
    decode_value,
    encode_value,
    in_order,
    merge_writes,
    namespace_directory,
    stem_of,
    thread_directory,
    writes_from_text,
    writes_path,
    writes_to_text,
)
from carrel_client.langgraph.item_queries import check_filter, fits_filter

KEEP_LATEST: Final = "keep_latest"
DELETE: Final = "delete"
CONTENT_TYPE: Final = "application/json"
_DELTA_COUNTERS: Final = "counters_since_delta_snapshot"
_MAX_CHANGES: Final = 1000
"""Changes that one commit takes."""
_MAX_ATTEMPTS: Final = 10
_LAST_FILES: Final = 2
"""A checkpoint and the pending writes of a task."""
_UUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Metadata = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """A checkpoint with its pending writes, not yet decoded."""

    stem: str
    stored: StoredCheckpoint
    writes: Sequence[StoredWrite]

    @property
    def sort_key(self) -> str:
        return self.stored.key.id


class CheckpointFiles:
    """Checkpoints below a prefix of files."""

    def __init__(self, files: Files[Any], prefix: str, serde: SerializerProtocol) -> None:
        self._files, self._prefix, self._serde = files, prefix, serde

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> Steps[RunnableConfig]:
        names = config["configurable"]
        key = _key(config, checkpoint["id"])
        stored = StoredCheckpoint(
            key,
            names.get("checkpoint_id"),
            encode_value(self._serde, checkpoint),
            encode_value(self._serde, get_checkpoint_metadata(config, metadata)),
        )
        path, text = checkpoint_path(self._prefix, key), stored.to_text()
        yield from steps_of(self._files.put, path, text, content_type=CONTENT_TYPE)
        return cast(RunnableConfig, key.config())

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, task_path: str
    ) -> Steps[None]:
        """Store a task's writes in one file; a repeated call adds what is not there."""
        added = [
            StoredWrite(
                task,
                task_path,
                WRITES_IDX_MAP.get(channel, number),
                channel,
                encode_value(self._serde, value),
            )
            for number, (channel, value) in enumerate(writes)
        ]
        key = _key(config, config["configurable"]["checkpoint_id"])
        path = writes_path(self._prefix, key, task)
        merged, condition = merge_writes((), added), {"if_none_match": "*"}
        for attempt in range(_MAX_ATTEMPTS):
            options = {**condition, "content_type": CONTENT_TYPE}
            try:
                yield from steps_of(self._files.put, path, writes_to_text(merged), **options)
            except WorkspaceConflict:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
                file = yield from steps_of(self._files.get, path)
                merged = merge_writes(writes_from_text(path, file.content), added)
                condition = {"if_match": file.etag}
            else:
                return

    def get_tuple(self, config: RunnableConfig) -> Steps[CheckpointTuple | None]:
        id = get_checkpoint_id(config)
        if not id:
            return (yield from self._latest_tuple(_key(config, "")))
        stem = checkpoint_stem(self._prefix, _key(config, id))
        return self._tuple_of(stem, (yield from self._load(stem)))

    def _latest_tuple(self, key: CheckpointKey) -> Steps[CheckpointTuple | None]:
        """The last checkpoint of a namespace, in one request if the last files are all of it."""
        directory = namespace_directory(self._prefix, key.thread, key.namespace)
        options = {"content": True, "last": _LAST_FILES}
        rows = yield from steps_of(self._files.list, f"{directory}/", **options)
        stem = stem_of(self._prefix, rows[-1].path) if rows else ""
        # Only after ids of one length is the order of paths that of checkpoints.
        if _UUID.fullmatch(stem.rpartition("/")[2]):
            latest = self._tuple_of(stem, (yield from self._loaded(rows)))
            latest = latest or self._tuple_of(stem, (yield from self._load(stem)))
            if latest:
                return latest
        stems = yield from self._stems(directory)
        return self._tuple_of(max(stems), (yield from self._load(max(stems)))) if stems else None

    def _tuple_of(self, stem: str, loaded: Iterable[LoadedCheckpoint]) -> CheckpointTuple | None:
        return next((self._tuple(item) for item in loaded if item.stem == stem), None)

    def list(
        self,
        config: RunnableConfig | None,
        metadata: Metadata | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Steps[builtins.list[CheckpointTuple]]:
        """The tuples that fit, newest first. Raises ValueError for an invalid filter."""
        check_filter(metadata)
        before_id = get_checkpoint_id(before) if before else None
        tuples: builtins.list[CheckpointTuple] = []
        for item in (yield from self._load_listed(config, metadata, before_id, limit)):
            if limit is not None and len(tuples) >= limit:
                break
            if before_id and item.stored.key.id >= before_id:
                continue
            entry = self._tuple(item)
            if fits_filter(cast(Metadata, entry.metadata), metadata):
                tuples.append(entry)
        return tuples

    def _load_listed(
        self,
        config: RunnableConfig | None,
        metadata: Metadata | None,
        before_id: str | None,
        limit: int | None,
    ) -> Steps[Sequence[LoadedCheckpoint]]:
        """Load what may be listed; a limited number of one namespace without all others."""
        if config is None:
            return (yield from self._load(f"{self._prefix}/"))
        id = get_checkpoint_id(config)
        key = _key(config, id or "")
        has_namespace = "checkpoint_ns" in config["configurable"]
        if id and has_namespace:
            stem = checkpoint_stem(self._prefix, key)
            return [item for item in (yield from self._load(stem)) if item.stem == stem]
        if not has_namespace:
            loaded = yield from self._load(thread_directory(self._prefix, key.thread) + "/")
            return [item for item in loaded if not id or item.stored.key.id == id]
        directory = namespace_directory(self._prefix, key.thread, key.namespace)
        if limit is None or metadata:
            return (yield from self._load(f"{directory}/"))
        stems = yield from self._stems(directory)
        if before_id:
            end = checkpoint_stem(self._prefix, _key(config, before_id))
            stems = [stem for stem in stems if stem < end]
        loaded = []
        for stem in sorted(stems, reverse=True)[:limit]:
            loaded += [item for item in (yield from self._load(stem)) if item.stem == stem]
        return loaded

    def delete_thread(self, thread: str) -> Steps[None]:
        try:
            directory = thread_directory(self._prefix, thread)
            yield from steps_of(self._files.remove_directory, directory, recursive=True)
        except NotFound:
            pass

    def delete_for_runs(self, run_ids: Collection[str]) -> Steps[None]:
        loaded = yield from self._load(f"{self._prefix}/")
        stems = {item.stem for item in loaded if self._metadata(item).get("run_id") in run_ids}
        yield from self._delete(lambda stem: stem in stems, f"{self._prefix}/")

    def copy_thread(self, source: str, target: str) -> Steps[None]:
        """Copy the checkpoints of a thread with their writes; a source without any is copied too.

        Up to 1,000 files are one commit.
        """
        directory = thread_directory(self._prefix, source)
        rows = yield from steps_of(self._files.list, f"{directory}/", content=True)
        changes: builtins.list[PutFile] = []
        for row in rows:
            file = yield from self._with_content(row)
            path = thread_directory(self._prefix, target) + file.path[len(directory) :]
            changes.append(PutFile(path=path, content=self._of_thread(file, target)))
        yield from self._commit(changes)

    def _of_thread(self, file: File, thread: str) -> str:
        """The content of a file as that of another thread."""
        if file.path != stem_of(self._prefix, file.path) + SUFFIX:
            return file.content
        stored = checkpoint_from_text(file.path, file.content)
        return replace(stored, key=replace(stored.key, thread=thread)).to_text()

    def prune(self, threads: Iterable[str], strategy: str) -> Steps[None]:
        """Delete all checkpoints of threads, or all but those that the latest ones need."""
        if strategy not in {KEEP_LATEST, DELETE}:
            raise ValueError(f"unknown strategy {strategy!r}: {KEEP_LATEST} or {DELETE}")
        for thread in threads:
            if strategy == DELETE:
                yield from self.delete_thread(thread)
                continue
            directory = f"{thread_directory(self._prefix, thread)}/"
            loaded = yield from self._load(directory)
            needed = self._needed(loaded)
            yield from self._delete(lambda stem: stem not in needed, directory)  # noqa: B023

    def delta_history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Steps[dict[str, DeltaChannelHistory]]:
        """Writes of channels and the value before them, along the parents of a checkpoint.

        Of a chain of parents that is a circle every checkpoint counts once.
        """
        key = _key(config, get_checkpoint_id(config) or "")
        directory = namespace_directory(self._prefix, key.thread, key.namespace)
        loaded = (yield from self._load(f"{directory}/")) if channels else ()
        by_id = {item.stored.key.id: item for item in loaded}
        target = by_id.get(key.id or max(by_id, default=""))
        writes: dict[str, builtins.list[Any]] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        current = by_id.pop(target.stored.parent or "", None) if target else None
        while current is not None and len(seeds) < len(writes):
            entry = self._tuple(current)
            for write in reversed(entry.pending_writes or ()):
                if write[1] in writes.keys() - seeds.keys():
                    writes[write[1]].append(write)
            values = entry.checkpoint["channel_values"]
            seeds |= {name: values[name] for name in (writes.keys() - seeds.keys()) & values.keys()}
            current = by_id.pop(current.stored.parent or "", None)
        return {
            channel: cast(
                DeltaChannelHistory,
                {"writes": writes[channel][::-1]}
                | ({"seed": seeds[channel]} if channel in seeds else {}),
            )
            for channel in channels
        }

    def _needed(self, loaded: Iterable[LoadedCheckpoint]) -> set[str]:
        """The latest checkpoint of each namespace, and the ancestors that its deltas build on."""
        by_key = {(item.stored.key.namespace, item.stored.key.id): item for item in loaded}
        latest: dict[str, LoadedCheckpoint] = {}
        for item in by_key.values():
            namespace = item.stored.key.namespace
            if namespace not in latest or latest[namespace].sort_key < item.sort_key:
                latest[namespace] = item
        needed: set[str] = set()
        for namespace, item in latest.items():
            channels, current = set(self._metadata(item).get(_DELTA_COUNTERS) or ()), item
            needed.add(item.stem)
            while True:
                values = decode_value(self._serde, current.stored.checkpoint)["channel_values"]
                channels -= values.keys()
                parent = by_key.get((namespace, current.stored.parent or ""))
                if not channels or parent is None:
                    break
                needed.add(parent.stem)
                current = parent
        return needed

    def _metadata(self, item: LoadedCheckpoint) -> Metadata:
        metadata: Metadata = decode_value(self._serde, item.stored.metadata)
        return metadata

    def _stems(self, directory: str) -> Steps[Sequence[str]]:
        """The stems of the checkpoints that are directly in a directory."""
        entries = yield from steps_of(self._files.list_directory, directory)
        return [entry.path.removesuffix(SUFFIX) for entry in entries if not entry.is_directory]

    def _load(self, prefix: str) -> Steps[Sequence[LoadedCheckpoint]]:
        """The checkpoints whose paths begin with a prefix, newest first, in one request."""
        rows = yield from steps_of(self._files.list, prefix, content=True)
        return (yield from self._loaded(rows))

    def _loaded(self, rows: Iterable[FileRow]) -> Steps[Sequence[LoadedCheckpoint]]:
        """The checkpoints of listed files, newest first."""
        checkpoints: dict[str, StoredCheckpoint] = {}
        writes: dict[str, builtins.list[StoredWrite]] = {}
        for row in rows:
            file = yield from self._with_content(row)
            stem = stem_of(self._prefix, file.path)
            if file.path == stem + SUFFIX:
                checkpoints[stem] = checkpoint_from_text(file.path, file.content)
            else:
                writes.setdefault(stem, []).extend(writes_from_text(file.path, file.content))
        loaded = [
            LoadedCheckpoint(stem, stored, in_order(writes.get(stem, ())))
            for stem, stored in checkpoints.items()
        ]
        return sorted(loaded, key=lambda item: item.sort_key, reverse=True)

    def _with_content(self, row: FileRow) -> Steps[File]:
        if isinstance(row, File):
            return row
        file: File = yield from steps_of(self._files.get, row.path)
        return file

    def _delete(self, is_deleted: Callable[[str], bool], prefix: str) -> Steps[None]:
        """Delete the files of checkpoints, in commits of limited size."""
        rows = yield from steps_of(self._files.list, prefix)
        paths = [row.path for row in rows if is_deleted(stem_of(self._prefix, row.path))]
        yield from self._commit([DeleteFile(path=path) for path in paths])

    def _commit(self, changes: Sequence[FileChange]) -> Steps[None]:
        for start in range(0, len(changes), _MAX_CHANGES):
            yield from steps_of(self._files.commit, changes[start : start + _MAX_CHANGES])

    def _tuple(self, item: LoadedCheckpoint) -> CheckpointTuple:
        stored = item.stored
        parent = stored.parent and CheckpointKey(
            stored.key.thread, stored.key.namespace, stored.parent
        )
        return CheckpointTuple(
            config=cast(RunnableConfig, stored.key.config()),
            checkpoint=decode_value(self._serde, stored.checkpoint),
            metadata=decode_value(self._serde, stored.metadata),
            parent_config=cast(RunnableConfig, parent.config()) if parent else None,
            pending_writes=[
                (write.task, write.channel, decode_value(self._serde, write.value))
                for write in item.writes
            ],
        )


def _key(config: RunnableConfig, id: str) -> CheckpointKey:
    names = config["configurable"]
    return CheckpointKey(str(names["thread_id"]), names.get("checkpoint_ns", ""), id)
