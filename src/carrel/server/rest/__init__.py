"""The face for HTTP clients."""
