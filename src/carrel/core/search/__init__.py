"""Full-text tokens, ranking, snippets and regular expressions."""
