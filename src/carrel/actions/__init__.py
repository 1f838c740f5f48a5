"""What one can do: each action reads, decides and commits."""
