"""Sessions: ids, entries, and what a shared session may see."""
