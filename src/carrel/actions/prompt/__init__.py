"""Assembly and linting of agents' prompts."""
