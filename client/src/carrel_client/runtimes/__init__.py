"""What the adapters of agent runtimes share."""
