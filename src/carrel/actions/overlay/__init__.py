"""Layered files: stacks, placeholders, pins, reviews and defaults."""
