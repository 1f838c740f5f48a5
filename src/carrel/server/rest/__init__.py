"""REST API, one package per capability."""
