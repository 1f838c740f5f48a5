"""Agent Skills of workspaces and runs."""
