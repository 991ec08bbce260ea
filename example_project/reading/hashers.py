"""How passwords of this demonstration are kept."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """Too few rounds for a real site: every visitor of the demonstration logs in, and its password is printed."""

    iterations = 1000
