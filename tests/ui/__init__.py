"""The web console in a real browser, on a real server."""
