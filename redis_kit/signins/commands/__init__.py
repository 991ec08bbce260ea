"""Management commands of sign-ins."""
