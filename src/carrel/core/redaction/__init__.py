"""Detection and replacement of secrets in content."""
