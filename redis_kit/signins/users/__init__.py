"""The sign-ins of one user: its keys and state, what is asked about it, and what changes it."""
