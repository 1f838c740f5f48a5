"""The world: one technology each, known to wiring alone."""
