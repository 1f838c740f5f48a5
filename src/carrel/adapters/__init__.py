"""Implementations of the ports, one technology each. Only wiring imports them."""
