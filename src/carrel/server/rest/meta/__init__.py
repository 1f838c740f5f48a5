"""REST endpoints about the server: health, discovery, schemas and AsyncAPI."""
