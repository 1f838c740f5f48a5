"""REST endpoints for sandboxes, shared workspaces and approvals."""
