"""Upstream test suites of agent runtimes, run against Carrel: `make compat`."""
