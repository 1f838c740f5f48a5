"""Small servers that speak the providers' own protocols, and run commands on this machine.

They check what the real ones would refuse, as far as that is known, and isolate nothing.
"""
