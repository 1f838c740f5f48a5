"""Agent records, configuration, identity and file map."""
