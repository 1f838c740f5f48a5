"""File diffs, file kinds and directory synchronization."""
