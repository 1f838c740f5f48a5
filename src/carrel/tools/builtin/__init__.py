"""Builtin."""
