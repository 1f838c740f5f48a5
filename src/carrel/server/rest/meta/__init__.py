"""Meta."""
