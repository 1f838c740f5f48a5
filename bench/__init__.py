"""Benchmarks: measured side by side in one run and reported as ratios."""
