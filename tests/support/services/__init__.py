"""Real servers for the tests: PostgreSQL and S3, started on demand and always stopped.

One daemon per pytest run owns the servers (`service_daemon`). It starts a server when a test first
requests it (`service_client`), and ends when its pytest ends, for whatever reason.
"""
