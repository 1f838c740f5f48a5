"""Serves with the settings around it and prints only the port."""

from __future__ import annotations

from carrel.settings import load
from carrel.wiring.server import StartupBanner, run


def tell(welcome: StartupBanner) -> None:
    print(welcome.url.rpartition(":")[2], flush=True)


if __name__ == "__main__":
    run(load(), tell, "bench.app:create_app")
