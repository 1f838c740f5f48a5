"""`carrel apply`: reads an agents file and reconciles the server's agents with it."""
