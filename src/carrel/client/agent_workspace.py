"""An agent's files over HTTP: reading and writing them, and the whole of them as a directory."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

from carrel.client.atomic_directory import Watch
from carrel.client.drivers import Driver, HttpRequest, Steps, operation
from carrel.client.errors import Malformed
from carrel.client.file_models import File, file_from_json
from carrel.client.files import Files, drop_none, text_of
from carrel.client.items import Items
from carrel.client.materialize import MaterializeRequest, MaterializeResult, materialise
from carrel.client.memories import Dreams, Memories
from carrel.client.pins import Pin, pin_of, pins_of
from carrel.client.prompts import Prompt, PromptFlaw, asked_at, flaws_of
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent
from carrel.client.runs import Run, start_run
from carrel.client.sessions import Sessions
from carrel.client.tools import Tools

MEMORY: Final = frozenset({"lessons.md", "preferences.md", "contacts.md"})
"""The files that a runtime keeps for its agent, under ``memory/``."""


class Workspace(Files[Driver]):
    """An agent's workspace, by id or slug: its own files over its template's and defaults."""

    def __init__(self, driver: Driver, server: str, agent: str) -> None:
        super().__init__(driver, "agents", agent)
        self._server, self._agent = server, agent

    def __repr__(self) -> str:
        return f"<Workspace of {self._agent} at {self._server}>"

    @property
    def sessions(self) -> Sessions[Driver]:
        """What is said with the agent. Nothing is asked for yet."""
        return Sessions(self._driver, self._agent)

    @property
    def memories(self) -> Memories[Driver]:
        """What the agent was told to remember."""
        return Memories(self._driver, self._agent)

    @property
    def dreams(self) -> Dreams[Driver]:
        return Dreams(self._driver, self._agent)

    @property
    def items(self) -> Items[Driver]:
        """What the agent shares with others, by key."""
        return Items(self._driver, self._agent)

    @property
    def tools(self) -> Tools[Driver]:
        """What the agent can do when a model asks for it."""
        return Tools(self._driver, self._agent)

    @operation
    def write_memory(
        self, name: str, content: str | bytes, *, if_match: str | None = None
    ) -> Steps[File]:
        """Replace lessons.md, preferences.md or contacts.md under ``memory/``, and nothing else."""
        if name not in MEMORY:
            raise Malformed(f"memory is {', '.join(sorted(MEMORY))}, and not {name!a}")
        body, head = {"content": text_of(content)}, drop_none(If_Match=if_match)
        answer = yield from send_idempotent(
            HttpRequest("PUT", self._at(f"memory/{name}"), headers=head, body=body)
        )
        return file_from_json(decode_json(answer))

    @operation
    def pins(self) -> Steps[tuple[Pin, ...]]:
        """How the agent stands to each of its pinned files: what was reviewed, what is offered."""
        return pins_of(
            (yield from get_json(HttpRequest("GET", api_path("agents", self._agent, "pins"))))
        )

    @operation
    def accept(self, path: str, sha256: str) -> Steps[Pin]:
        """Move a pin to what was reviewed. Raises Stale where that is not the latest any more."""
        where = api_path("agents", self._agent, "pins", path, "accept")
        return pin_of(
            decode_json(
                (yield from send_idempotent(HttpRequest("POST", where, body={"sha256": sha256})))
            )
        )

    @operation
    def roll_back(self, path: str, version: int | None = None) -> Steps[Pin]:
        """Move a pin back to what was reviewed before, or to a version of the agent's own."""
        body = {} if version is None else {"version": version}
        where = api_path("agents", self._agent, "pins", path, "rollback")
        return pin_of(
            decode_json((yield from send_idempotent(HttpRequest("POST", where, body=body))))
        )

    @operation
    def prompt(self, mode: str = "main") -> Steps[Prompt]:
        """The system prompt that the agent would be given now; ``shared`` where others listen."""
        return (yield from asked_at(api_path("agents", self._agent, "prompt"), {"scope": mode}))

    @operation
    def lint(self) -> Steps[tuple[PromptFlaw, ...]]:
        """What is wrong with the agent's prompt and its files."""
        return flaws_of(
            (
                yield from get_json(
                    HttpRequest("GET", api_path("agents", self._agent, "prompt", "lint"))
                )
            )
        )

    @operation
    def materialise(
        self,
        directory: str | os.PathLike[str],
        *,
        stale_ok: bool = False,
        tolerate: Collection[str] = (),
        watch: Watch | None = None,
    ) -> Steps[MaterializeResult]:
        """Make a directory hold exactly what is served, or raise and leave it as it is.

        ``stale_ok`` takes what an earlier call put there where this one fails. ``tolerate`` names
        files to do without where the server cannot give them. ``watch`` is told of each file that
        is written: what is done, how many, of how many.
        """
        inputs = MaterializeRequest(self._server, self._agent, stale_ok, frozenset(tolerate), watch)
        return (yield from materialise(directory, inputs))

    @operation
    def start_run(self, workflow: str = "", *, mode: str | None = None) -> Steps[Run[Driver]]:
        """Freeze the workspace as it is now for one piece of work."""
        asked: Mapping[str, Any] = {"workflowId": workflow, "agentId": self._agent, "scope": mode}
        return (yield from start_run(self._driver, asked))
