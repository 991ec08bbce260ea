"""Signals of throttles."""

from django.dispatch import Signal

# A call was refused by the server, from memory, or by a failure policy. Arguments: throttle, identity, decision.
throttled = Signal()
