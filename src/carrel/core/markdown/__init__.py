"""Markdown lines, code fences and labelled values."""
