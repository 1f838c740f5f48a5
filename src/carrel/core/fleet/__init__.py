"""Fleet: what waits and how agents differ from their templates, counted over all agents."""
