"""Search over files, memories and sessions."""
