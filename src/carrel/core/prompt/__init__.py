"""Assembly and lint of an agent's system prompt."""
