"""REST endpoints for runs and their snapshots."""
