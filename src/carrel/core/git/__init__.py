"""Conversion of a scope's history to git commits."""
