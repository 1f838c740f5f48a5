"""Agents as a file says they should be: reading it, and making the server's agents so."""
