"""Stored values: trees, commits, records, events and idempotency keys."""
