"""Commands about all agents together."""
