"""The whole product from outside: real processes, real sockets, real deaths."""
