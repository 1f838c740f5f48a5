"""Tenant policy: limits, redaction, file classes and writable paths."""
