"""Use cases of the Memory Stores API, over shared workspaces and their files."""
