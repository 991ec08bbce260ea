"""Signals of throttles."""

from django.dispatch import Signal

# throttle, identity, decision: a call was refused, by the server, from memory or by a failure policy.
throttled = Signal()
