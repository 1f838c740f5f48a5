"""REST endpoints for files, history, pins, defaults and the overlay API."""
