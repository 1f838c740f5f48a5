"""What we ask of the world: a few protocols, each a contract."""
