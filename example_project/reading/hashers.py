"""The password hasher of the example site."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """A hasher with too few iterations for a real site: the demo logs in often, and its passwords are public."""

    iterations = 1000
