"""Carrel: a private desk for every AI agent, with layered, versioned files frozen for every run."""
