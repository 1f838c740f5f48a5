"""Sandbox providers: local isolation, Docker, Kubernetes, Lambda, E2B, Daytona."""
