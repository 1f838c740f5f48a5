"""Keeping a directory and an agent's own files the same: the disk, the server, and both watched."""
