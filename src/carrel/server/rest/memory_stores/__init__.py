"""The Memory Stores API, with the bodies and errors that its own clients expect."""
