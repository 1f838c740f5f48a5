"""The layers of an agent: what is reviewed between them, and the files they all begin with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from carrel.actions.overlay import default_files, pins
from carrel.actions.overlay.default_files import DefaultsStatus
from carrel.actions.overlay.reviews import BulkAcceptOutcome
from carrel.actions.prompt import prompts
from carrel.actions.prompt.prompts import AssembledPrompt
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, digest_named
from carrel.core.overlay.pins import PinStatus
from carrel.core.runs import Audience
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent
from carrel.server.python.caller import CallerContext, one_of
from carrel.server.python.files import Files, Stacked
from carrel.server.python.items import Items
from carrel.server.python.memories import Dreams, Memories
from carrel.server.python.sessions import Sessions
from carrel.server.python.tools import Tools
from carrel.server.python.workspaces import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Where an agent stands with one pinned file."""

    path: str
    pinned_sha256: str | None
    """What was reviewed last."""
    latest_sha256: str | None
    """What its template or the defaults say now."""
    update_available: bool
    overridden: bool
    pinned: str | None = None
    latest: str | None = None


Text = bytes | CorruptContent | None


def _pin(pin: PinStatus, pinned: Text = None, latest: Text = None) -> Pin:
    return Pin(
        path=pin.path.text,
        pinned_sha256=_hex(pin.pinned),
        latest_sha256=_hex(pin.latest),
        update_available=pin.update_available,
        overridden=pin.overridden,
        pinned=_decoded(pinned),
        latest=_decoded(latest),
    )


def _decoded(text: Text) -> str | None:
    """Raises Corrupt for one that cannot be had."""
    if isinstance(text, CorruptContent):
        raise text
    return None if text is None else text.decode(errors="replace")


def _hex(blob: Blob | None) -> str | None:
    return blob.digest.removeprefix("sha256:") if blob else None


class AgentWorkspace(Workspace):
    """An agent's files over its template's over the defaults."""

    def __init__(self, seat: CallerContext, stack: Stacked, agent: str) -> None:
        super().__init__(seat, stack, agent)
        self._name = agent

    async def prompt(self, mode: str = Audience.MAIN) -> AssembledPrompt:
        """The system prompt that the agent would be given now; ``shared`` where others listen.

        Raises Taken where a policy file does not fit or cannot be had.
        """
        chosen = one_of(Audience, mode, "mode")
        return await prompts.of_agent(self._ports, self._actor, self._name, chosen)

    @property
    def sessions(self) -> Sessions:
        """What is said with it."""
        return Sessions(self._seat, self._name)

    @property
    def memories(self) -> Memories:
        """What it was told to remember."""
        return Memories(self._seat, self._name)

    @property
    def dreams(self) -> Dreams:
        return Dreams(self._seat, self._name)

    @property
    def items(self) -> Items:
        """What it shares with others, by key."""
        return Items(self._seat, self._name)

    @property
    def tools(self) -> Tools:
        """What it can do when a model asks for it."""
        return Tools(self._seat, self._name)

    async def pins(self) -> tuple[Pin, ...]:
        """Every pinned file that it has or could have, with both texts."""
        found = await pins.status(self._ports, self._actor, self._name)
        return tuple(_pin(one.pin, one.pinned, one.latest) for one in found)

    async def accept(self, path: str, sha256: str) -> Pin:
        """Take what was reviewed. Raises Stale where there is something newer than that."""
        wanted = digest_named(sha256)
        return _pin(await pins.accept(self._ports, self._actor, self._name, Path(path), wanted))

    async def roll_back(self, path: str, version: int | None = None) -> Pin:
        """Go back to what was reviewed before, or at a version of its own history."""
        given = (self._name, Path(path), version)
        return _pin(await pins.roll_back(self._ports, self._actor, *given))


class TemplateFiles(Files):
    """A template's own files."""

    def __init__(self, seat: CallerContext, stack: Stacked, template: str) -> None:
        super().__init__(seat, stack)
        self._name = template

    async def accept(self, path: str, sha256: str) -> tuple[BulkAcceptOutcome, ...]:
        """Take what was reviewed for every agent that follows: one outcome each."""
        given = (self._name, Path(path), digest_named(sha256))
        return await pins.accept_for_all(self._ports, self._actor, *given)


class Defaults(Files):
    """The files beneath all agents of the tenant."""

    async def status(self) -> DefaultsStatus:
        """How they stand to those that Carrel comes with."""
        return await default_files.status(self._ports, self._actor)

    async def update(self, take: Iterable[str] = (), keep: Iterable[str] = ()) -> DefaultsStatus:
        """Let those follow that nobody has edited; of what is offered, take or keep what is named.

        Says how it stood before.
        """
        if isinstance(take, str) or isinstance(keep, str):
            raise ValidationError("take and keep are lists of paths")
        chosen = tuple(map(Path, take)), tuple(map(Path, keep))
        return await default_files.update(self._ports, self._actor, *chosen)
