"""Dry runs: the same actions over changes that are held in memory and never stored."""
