"""Event streams and webhooks."""
