"""Sandbox configuration, tool access and the merge of command results."""
