"""Signals about the servers. Components send their own from their own modules."""

from django.dispatch import Signal

# using, error: a connection's circuit breaker opened, so callers are refused without a round trip.
redis_unavailable = Signal()
# using: the breaker closed again.
redis_recovered = Signal()
# component, policy, error: a call was answered by its failure policy; the first of an outage only.
failure_policy_applied = Signal()
