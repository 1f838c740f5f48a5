"""Who is asking: one protocol each, none of which knows another."""
