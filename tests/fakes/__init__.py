"""Fake provider services that speak the real protocols and run commands on this machine.

They check what the real services would refuse, as far as that is known, and isolate nothing.
"""
