"""Local sandbox provider: commands on this machine under the strongest isolation."""

from __future__ import annotations

from carrel.adapters.sandbox.local.persistent import LocalSandbox as LocalSandbox
