"""REST endpoints for event streams and webhooks."""
