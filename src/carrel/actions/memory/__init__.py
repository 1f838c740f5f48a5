"""Memories of agents and their consolidation (dreams)."""
