"""Runs: frozen snapshots of workspaces."""
