"""Workspaces: the tenant's own, and those of agents."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

from carrel_client.drivers import Driver, Steps, operation
from carrel_client.errors import ValidationError
from carrel_client.file_changes import text_of
from carrel_client.file_models import File, file_from_json
from carrel_client.files import Files
from carrel_client.http_messages import HttpRequest
from carrel_client.items import Items
from carrel_client.local_directory.atomic_directory import ProgressCallback
from carrel_client.local_directory.materialize import (
    MaterializeRequest,
    MaterializeResult,
    materialize,
)
from carrel_client.memories import Dreams, Memories
from carrel_client.models import model_from_json
from carrel_client.pins import Pin, pin_from_json, pins_from_json
from carrel_client.prompts import Prompt, PromptFlaw, get_flaws, get_prompt
from carrel_client.requests import api_path, get_json, send_json, send_with_retry, write_headers
from carrel_client.reviews import MergeProposal
from carrel_client.runs import Run, get_run, list_runs, start_run
from carrel_client.sessions import Sessions
from carrel_client.tools import Tools

MEMORY_FILES: Final = frozenset({"lessons.md", "preferences.md", "contacts.md"})
"""The files that a runtime writes for its agent, under ``memory/``."""


class Workspace(Files[Driver]):
    """Files in which runs can be started: a workspace of the tenant, by name."""

    def __init__(self, driver: Driver, name: str) -> None:
        super().__init__(driver, "workspaces", name)
        self._name = name

    @operation
    def start_run(
        self,
        workflow_id: str,
        *,
        scope: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Run[Driver]]:
        """Freeze the workspace as it is now for a run, whatever the number of files."""
        fields = {"workflowId": workflow_id, "workspaceId": self._name, "scope": scope}
        return (yield from start_run(self._driver, fields, idempotency_key))

    @operation
    def run(self, run_id: str) -> Steps[Run[Driver]]:
        """Raises NotFound."""
        return (yield from get_run(self._driver, run_id))

    @operation
    def runs(self, *, before: str = "", limit: int = 100) -> Steps[tuple[Run[Driver], ...]]:
        """A page of its runs, newest first; ``before`` is the id of the last one seen."""
        return (yield from list_runs(self._driver, before, limit, workspaceId=self._name))


class AgentWorkspace(Files[Driver]):
    """Workspace of an agent: its files over its template's over the defaults."""

    def __init__(self, driver: Driver, server: str, agent: str) -> None:
        super().__init__(driver, "agents", agent)
        self._server, self._agent = server, agent

    def __repr__(self) -> str:
        return f"<AgentWorkspace {self._agent} at {self._server}>"

    @property
    def sessions(self) -> Sessions[Driver]:
        return Sessions(self._driver, self._agent)

    @property
    def memories(self) -> Memories[Driver]:
        return Memories(self._driver, self._agent)

    @property
    def dreams(self) -> Dreams[Driver]:
        return Dreams(self._driver, self._agent)

    @property
    def items(self) -> Items[Driver]:
        return Items(self._driver, self._agent)

    @property
    def tools(self) -> Tools[Driver]:
        return Tools(self._driver, self._agent)

    @operation
    def write_memory(
        self,
        name: str,
        content: str | bytes,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[File]:
        """Replace lessons.md, preferences.md or contacts.md under ``memory/``."""
        if name not in MEMORY_FILES:
            names = ", ".join(sorted(MEMORY_FILES))
            raise ValidationError(f"memory files are {names}, not {name!a}")
        body, headers = {"content": text_of(content)}, write_headers(if_match=if_match)
        path = self._path(f"memory/{name}")
        file = yield from send_json(
            "PUT", path, body, headers=headers, idempotency_key=idempotency_key
        )
        return file_from_json(file)

    @operation
    def render(self, path: str, content: str) -> Steps[Mapping[str, Any]]:
        """Render a draft for the agent, without storing it: ``content``, ``tokens``."""
        request = HttpRequest("POST", self._path(path, "render"), body={"content": content})
        rendered: Mapping[str, Any] = (yield from send_with_retry(request)).json()
        return rendered

    @operation
    def pins(self) -> Steps[tuple[Pin, ...]]:
        """The review status of each pinned file: what was reviewed, what is offered."""
        return pins_from_json((yield from get_json(api_path("agents", self._agent, "pins"))))

    @operation
    def accept(
        self, path: str, sha256: str | None, *, idempotency_key: str | None = None
    ) -> Steps[Pin]:
        """Accept a reviewed text; None accepts that the file was removed.

        Raises WorkspaceConflict if a newer one is offered.
        """
        path = api_path("agents", self._agent, "pins", path, "accept")
        body = {"sha256": sha256}
        pin = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return pin_from_json(pin)

    @operation
    def decline(
        self,
        path: str,
        sha256: str | None,
        reason: str,
        *,
        idempotency_key: str | None = None,
    ) -> Steps[Pin]:
        """Decline an offered text; the next one is offered again. Raises WorkspaceConflict."""
        path = api_path("agents", self._agent, "pins", path, "decline")
        body = {"sha256": sha256, "reason": reason}
        pin = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return pin_from_json(pin)

    @operation
    def propose_merge(self, path: str) -> Steps[MergeProposal]:
        """Merge the offered text into the override, without storing it."""
        path = api_path("agents", self._agent, "pins", path, "merge")
        return model_from_json(MergeProposal, (yield from get_json(path)))

    @operation
    def merge(
        self,
        path: str,
        sha256: str,
        content: str,
        if_match: str,
        *,
        idempotency_key: str | None = None,
    ) -> Steps[Pin]:
        """Save a merged text as the override and pin the offered one.

        Raises WorkspaceConflict if one of them changed since they were merged.
        """
        path = api_path("agents", self._agent, "pins", path, "merge")
        body = {"sha256": sha256, "content": content, "ifMatch": if_match}
        pin = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return pin_from_json(pin)

    @operation
    def roll_back(
        self, path: str, version: int | None = None, *, idempotency_key: str | None = None
    ) -> Steps[Pin]:
        """Return to the text reviewed before, or to a version of the agent's file."""
        body = {} if version is None else {"version": version}
        path = api_path("agents", self._agent, "pins", path, "rollback")
        pin = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return pin_from_json(pin)

    @operation
    def prompt(self, scope: str = "main") -> Steps[Prompt]:
        """Return the current system prompt; ``shared`` omits private content.

        Raises Conflict if a policy file does not fit or is not available.
        """
        path = api_path("agents", self._agent, "prompt")
        return (yield from get_prompt(path, {"scope": scope}))

    @operation
    def lint(self) -> Steps[tuple[PromptFlaw, ...]]:
        """The faults of the agent's prompt and its files."""
        return (yield from get_flaws(api_path("agents", self._agent, "prompt", "lint")))

    @operation
    def materialize(
        self,
        directory: str | os.PathLike[str],
        *,
        stale_ok: bool = False,
        tolerate: Collection[str] = (),
        progress: ProgressCallback | None = None,
    ) -> Steps[MaterializeResult]:
        """Replace a directory by the served files; on error it stays unchanged.

        With ``stale_ok`` the files of an earlier call are used if this one fails. ``tolerate``
        names files that may be missing if their content is not available. ``progress`` is called
        with (activity, files written, files in total).
        """
        request = MaterializeRequest(
            self._server, self._agent, stale_ok, frozenset(tolerate), progress
        )
        return (yield from materialize(directory, request))

    @operation
    def start_run(  # noqa: PLR0913 - the fields of a run, by name
        self,
        workflow_id: str = "",
        *,
        scope: str | None = None,
        session_id: str | None = None,
        include: Collection[str] = (),
        dialect: str | None = None,
        if_none_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Run[Driver]]:
        """Freeze the workspace as it is now for a run, whatever the number of files.

        The run answers in the session. ``include`` names what to return in ``run.parts``, as in
        ``Client.start_run``.
        """
        fields = {
            "workflowId": workflow_id,
            "agentId": self._agent,
            "scope": scope,
            "sessionId": session_id,
            "include": list(include),
            "dialect": dialect,
        }
        return (yield from start_run(self._driver, fields, idempotency_key, if_none_match))

    @operation
    def run(self, run_id: str) -> Steps[Run[Driver]]:
        """Raises NotFound."""
        return (yield from get_run(self._driver, run_id))

    @operation
    def runs(
        self, *, session_id: str | None = None, before: str = "", limit: int = 100
    ) -> Steps[tuple[Run[Driver], ...]]:
        """A page of its runs, newest first; ``before`` is the id of the last one seen."""
        filters = {"agentId": self._agent, "sessionId": session_id}
        return (yield from list_runs(self._driver, before, limit, **filters))

    def _event_scopes(self) -> Steps[frozenset[tuple[str, str]]]:
        record = yield from get_json(api_path("agents", self._agent))
        scopes = {("agent", str(record["id"])), ("defaults", "")}
        if record["templateId"] is not None:
            scopes.add(("template", str(record["templateId"])))
        return frozenset(scopes)
