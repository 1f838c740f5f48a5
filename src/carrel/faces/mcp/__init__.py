"""The face for clients of the Model Context Protocol: one agent's tools, files and prompt.

Importing it loads the protocol's own library, which takes more than a second: wiring does so when
the first client comes.
"""

from __future__ import annotations

from carrel.faces.mcp.server import VISIT, made
from carrel.faces.mcp.visit import Circumstances, Visit
from carrel.faces.mcp.watching import Subscriptions

__all__ = ["VISIT", "Circumstances", "Subscriptions", "Visit", "made"]
