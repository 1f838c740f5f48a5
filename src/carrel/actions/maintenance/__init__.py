"""Backup, restore, integrity checks and garbage collection."""
