"""Tenants, people, API keys, secrets and sign-in."""
