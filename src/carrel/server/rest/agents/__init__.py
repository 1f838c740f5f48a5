"""REST endpoints for agents, templates, sessions, memories, prompts and items."""
