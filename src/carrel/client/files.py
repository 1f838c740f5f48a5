"""An agent's files over HTTP: reading and writing them, and the whole of them as a directory."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

from carrel.client.asking import at, decoded, fetched, written
from carrel.client.directory import Watch
from carrel.client.driving import Driver, Noun, Send, Steps, operation
from carrel.client.errors import Incomplete, Malformed
from carrel.client.items import Items
from carrel.client.materialising import Materialised, Wish, materialise
from carrel.client.memories import Dreams, Memories
from carrel.client.prompts import Prompt, PromptFlaw, asked_at, flaws_of
from carrel.client.rows import File, FileRow, rows_of, whole_file
from carrel.client.runs import Run, started
from carrel.client.sessions import Sessions
from carrel.client.tools import Tools

MEMORY: Final = frozenset({"lessons.md", "preferences.md", "contacts.md"})
"""The files that a runtime keeps for its agent, under ``memory/``."""


def _said(**headers: str | None) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items() if text is not None}


class Workspace(Noun[Driver]):
    """An agent's workspace, by id or slug: its own files over its template's and defaults."""

    def __init__(self, driver: Driver, server: str, agent: str) -> None:
        super().__init__(driver)
        self._server, self._agent = server, agent

    def __repr__(self) -> str:
        return f"<Workspace of {self._agent} at {self._server}>"

    def _at(self, *path: str) -> str:
        return at("agents", self._agent, "files", *path)

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
    def get(self, path: str, *, raw: bool = False, version: int | None = None) -> Steps[File]:
        """A file as it is served now, or as it was at a version.

        ``raw`` leaves placeholders as they stand, which is what an editor edits.
        """
        query = {"raw": "true"} if raw else {}
        query |= {} if version is None else {"version": str(version)}
        return whole_file((yield from fetched(Send("GET", self._at(path), query))))

    @operation
    def list(
        self, prefix: str = "", *, content: bool = False, raw: bool = False
    ) -> Steps[tuple[FileRow, ...]]:
        """All files whose path starts so, in order of path.

        With ``content`` each that can be had is a File; of others ``error`` says why not.
        """
        query = {"prefix": prefix} if prefix else {}
        query |= {"content": "true"} if content else {}
        query |= {"raw": "true"} if raw else {}
        return rows_of((yield from fetched(Send("GET", self._at(), query))))

    @operation
    def read(self, prefix: str = "") -> Steps[dict[str, str]]:
        """The content of all files whose path starts so, in one request. Raises Incomplete."""
        query = {"content": "true", "prefix": prefix}
        rows = rows_of((yield from fetched(Send("GET", self._at(), query))))
        lacking = [row for row in rows if not isinstance(row, File)]
        if lacking:
            raise Incomplete({row.path: row.error or "it is not text" for row in lacking})
        return {row.path: row.content for row in rows if isinstance(row, File)}

    @operation
    def put(  # noqa: PLR0913 - what a writer may say beside the content, by name
        self,
        path: str,
        content: str | bytes,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accept_template_update: bool = False,
        content_type: str | None = None,
        why: str | None = None,
        run: str | None = None,
    ) -> Steps[File]:
        """Create or replace a file; what comes back is what was stored, secrets redacted.

        ``if_match`` is the etag that it must still have (``*``: it must exist);
        ``if_none_match="*"`` says that it must not exist. Raises Stale where it is otherwise.
        A pinned file is overridden only with ``accept_template_update``.
        """
        body: dict[str, Any] = {"content": _text(content)}
        if accept_template_update:
            body["acceptTemplateUpdate"] = True
        if content_type is not None:
            body["contentType"] = content_type
        head = _said(If_Match=if_match, If_None_Match=if_none_match)
        head |= _said(Carrel_Reason=why, Carrel_Run=run)
        answer = yield from written(Send("PUT", self._at(path), headers=head, body=body))
        return whole_file(decoded(answer))

    @operation
    def delete(
        self,
        path: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        why: str | None = None,
        run: str | None = None,
    ) -> Steps[None]:
        """Remove the agent's own file, and so go back to what lies beneath."""
        head = _said(If_Match=if_match, If_None_Match=if_none_match)
        head |= _said(Carrel_Reason=why, Carrel_Run=run)
        yield from written(Send("DELETE", self._at(path), headers=head))

    @operation
    def write_memory(
        self, name: str, content: str | bytes, *, if_match: str | None = None
    ) -> Steps[File]:
        """Replace lessons.md, preferences.md or contacts.md under ``memory/``, and nothing else."""
        if name not in MEMORY:
            raise Malformed(f"memory is {', '.join(sorted(MEMORY))}, and not {name!a}")
        body, head = {"content": _text(content)}, _said(If_Match=if_match)
        answer = yield from written(
            Send("PUT", self._at(f"memory/{name}"), headers=head, body=body)
        )
        return whole_file(decoded(answer))

    @operation
    def prompt(self, mode: str = "main") -> Steps[Prompt]:
        """The system prompt that the agent would be given now; ``shared`` where others listen."""
        return (yield from asked_at(at("agents", self._agent, "prompt"), {"scope": mode}))

    @operation
    def lint(self) -> Steps[tuple[PromptFlaw, ...]]:
        """What is wrong with the agent's prompt and its files."""
        return flaws_of(
            (yield from fetched(Send("GET", at("agents", self._agent, "prompt", "lint"))))
        )

    @operation
    def materialise(
        self,
        directory: str | os.PathLike[str],
        *,
        stale_ok: bool = False,
        tolerate: Collection[str] = (),
        watch: Watch | None = None,
    ) -> Steps[Materialised]:
        """Make a directory hold exactly what is served, or raise and leave it as it is.

        ``stale_ok`` takes what an earlier call put there where this one fails. ``tolerate`` names
        files to do without where the server cannot give them. ``watch`` is told of each file that
        is written: what is done, how many, of how many.
        """
        wish = Wish(self._server, self._agent, stale_ok, frozenset(tolerate), watch)
        return (yield from materialise(directory, wish))

    @operation
    def start_run(self, workflow: str = "", *, mode: str | None = None) -> Steps[Run[Driver]]:
        """Freeze the workspace as it is now for one piece of work."""
        asked: Mapping[str, Any] = {"workflowId": workflow, "agentId": self._agent, "scope": mode}
        return (yield from started(self._driver, asked))


def _text(content: str | bytes) -> str:
    """Files hold text. Raises Malformed for what is none."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        text.encode()
    except UnicodeError:
        raise Malformed("the content is not valid UTF-8") from None
    return text
