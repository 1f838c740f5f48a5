"""Reading, writing and history of workspace files."""
