"""Memory stores: shared workspaces as the hosted Memory Stores API shows them."""
