"""Measurements that run in the environment of a runtime, with its adapter and the plain client."""
