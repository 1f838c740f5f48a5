"""Overlay."""
