"""From settings to adapters to a world to faces: the only room that knows all others."""
