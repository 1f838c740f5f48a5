"""Use cases: each action authorizes, reads, decides and commits."""
