"""Commands on this machine, behind the strongest walls that it has: the local provider."""

from __future__ import annotations

from carrel.adapters.bubblewrap.keeper import LocalSandbox as LocalSandbox
