"""Agents, templates and what is generated from them."""
