"""Composition root: builds adapters, ports and the server from the settings."""
