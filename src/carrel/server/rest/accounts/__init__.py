"""REST endpoints for tenants, people, keys, secrets, policy, audit and sign-in."""
