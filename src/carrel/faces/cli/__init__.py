"""The face for people at a terminal."""
