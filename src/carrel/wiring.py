"""From settings to adapters to a world to faces: the only module that knows all others."""
