"""Stores in directories of the local file system."""
