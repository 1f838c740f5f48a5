"""Measures the adapter of one runtime in its environment: `python -m bench.adapters RUNTIME`."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module

from bench.adapters.operations import measure


def main(runtime: str, rounds: str, calls: str) -> None:
    if cpus := os.environ.get("BENCH_CPUS"):
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    asyncio.run(_measure(runtime, int(rounds), int(calls)))


async def _measure(runtime: str, rounds: int, calls: int) -> None:
    module = import_module(f"bench.adapters.{runtime}")
    await measure(await module.open_operations(), rounds, calls)


if __name__ == "__main__":
    main(*sys.argv[1:])
