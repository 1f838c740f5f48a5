"""Serves with the settings of the environment and prints only the port."""

from __future__ import annotations

from carrel.settings import load
from carrel.wiring.server import StartupBanner, run


def print_port(banner: StartupBanner) -> None:
    print(banner.url.rpartition(":")[2], flush=True)


if __name__ == "__main__":
    run(load(), print_port, "bench.app:create_app")
