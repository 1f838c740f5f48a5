"""Workspaces: files in which runs can be started."""

from __future__ import annotations

from collections.abc import Mapping

from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.core.runs import Audience
from carrel.server.python.caller import CallerContext, one_of
from carrel.server.python.files import Files, Stacked
from carrel.server.python.runs import Run


class Workspace(Files):
    """A workspace of the tenant, or an agent's: its own files over its template's and defaults."""

    def __init__(self, seat: CallerContext, stack: Stacked, agent: str | None = None) -> None:
        super().__init__(seat, stack)
        self._agent = agent

    async def start_run(
        self,
        workflow: str = "",
        *,
        mode: str = Audience.MAIN,
        variables: Mapping[str, str] | None = None,
    ) -> Run:
        """Freeze the workspace as it is now, at a cost that does not depend on its files.

        A workspace of the tenant needs the name of a workflow; an agent's may do without.
        """
        chosen = one_of(Audience, mode, "mode")
        asked = RunRequest(workflow, agent=self._agent, mode=chosen, variables=variables or {})
        return Run(self._seat, await runs.start(self._ports, self._actor, asked))

    async def run(self, id: str) -> Run:
        return Run(self._seat, await runs.get(self._ports, self._actor, id))

    async def runs(self, *, before: str = "", limit: int = 100) -> tuple[Run, ...]:
        """Newest first; ``before`` is the id of the last one seen."""
        page = await runs.page(
            self._ports, self._actor, agent=self._agent, cursor=before, limit=limit
        )
        return tuple(Run(self._seat, run) for run in page.items)
