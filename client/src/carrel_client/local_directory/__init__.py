"""Local directories that hold an agent's files."""
