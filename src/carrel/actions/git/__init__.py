"""Git history of agents and checkpoints."""
