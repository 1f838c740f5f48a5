"""`carrel sync`: two-way synchronization of a directory with an agent's own files."""
