"""Real servers for the tests: PostgreSQL and S3, started on demand and never left behind.

One keeper process per pytest run owns the servers (`keeper`). It starts one when a test first asks
for it (`ask`), and ends when the pytest that started it ends, however that ends.
"""
