"""Fleet: what waits for people, and an overview of all agents."""
