"""Memories, recalls and their promotion into MEMORY.md."""
