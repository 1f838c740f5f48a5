"""HTTP framework: routing, parsing, responses, errors, metrics and OpenAPI."""
