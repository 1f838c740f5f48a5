"""Commands on this machine, behind the strongest walls that it has: the local provider."""

from __future__ import annotations

from carrel.adapters.sandbox.local.persistent import LocalSandbox as LocalSandbox
