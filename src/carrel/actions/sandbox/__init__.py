"""Sandboxes, shared workspaces, and the file and command tools' storage side."""
