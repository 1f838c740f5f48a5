"""LangGraph's checkpointer over files: one JSON file for each checkpoint and each task's writes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from carrel_client.drivers import await_steps, run_steps
from carrel_client.files import Files
from carrel_client.langgraph.checkpoint_files import KEEP_LATEST, CheckpointFiles

DEFAULT_PREFIX: Final = "langgraph/checkpoints"


class CarrelSaver(BaseCheckpointSaver[str]):
    """A LangGraph checkpointer in the files of a workspace.

    ``files`` is ``client.workspace("ws_…")``, of a Client or an AsyncClient; the methods that block
    need a Client. Use a workspace that tools of the agent cannot write: who can change a checkpoint
    decides what the graph loads. State is stored encoded by the serializer, so a secret in it is
    not replaced; LangGraph's ``EncryptedSerializer`` may be given as ``serde``.
    """

    def __init__(
        self,
        files: Files[Any],
        *,
        prefix: str = DEFAULT_PREFIX,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._files = files
        self._driver = files._driver
        self._prefix = prefix.strip("/")

    @property
    def _checkpoints(self) -> CheckpointFiles:
        return CheckpointFiles(self._files, self._prefix, self.serde)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return run_steps(self._driver, self._checkpoints.get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await await_steps(self._driver, self._checkpoints.get_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        yield from run_steps(self._driver, self._checkpoints.list(config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for item in await await_steps(
            self._driver, self._checkpoints.list(config, filter, before, limit)
        ):
            yield item

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return run_steps(self._driver, self._checkpoints.put(config, checkpoint, metadata))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await await_steps(self._driver, self._checkpoints.put(config, checkpoint, metadata))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        run_steps(self._driver, self._checkpoints.put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await await_steps(
            self._driver, self._checkpoints.put_writes(config, writes, task_id, task_path)
        )

    def delete_thread(self, thread_id: str) -> None:
        run_steps(self._driver, self._checkpoints.delete_thread(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        await await_steps(self._driver, self._checkpoints.delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        run_steps(self._driver, self._checkpoints.delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await await_steps(self._driver, self._checkpoints.delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        run_steps(self._driver, self._checkpoints.copy_thread(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await await_steps(
            self._driver, self._checkpoints.copy_thread(source_thread_id, target_thread_id)
        )

    def prune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        run_steps(self._driver, self._checkpoints.prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        await await_steps(self._driver, self._checkpoints.prune(thread_ids, strategy))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return run_steps(self._driver, self._checkpoints.delta_history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await await_steps(self._driver, self._checkpoints.delta_history(config, channels))

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        number = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random.random():016}"
