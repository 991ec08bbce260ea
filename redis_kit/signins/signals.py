"""The signal of sign-ins."""

from django.dispatch import Signal

# Sent by the model's class at an instance's first sign-in of a day, with instance and result. Errors are logged.
signed_in = Signal()
