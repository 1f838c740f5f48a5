"""Layered workspaces: composition, file classes, pins and placeholders."""
