"""What the component tells about sign-ins."""

from django.dispatch import Signal

# instance, result: somebody signed in for the first time on that day; sent by the model's class. Errors are logged.
signed_in = Signal()
