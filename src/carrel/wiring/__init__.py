"""From settings to adapters to a world to faces: the only room that knows all others."""

from __future__ import annotations

from carrel.wiring.world import Opened, open_world

__all__ = ["Opened", "open_world"]
