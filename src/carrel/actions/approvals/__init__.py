"""Approvals of tool calls."""
