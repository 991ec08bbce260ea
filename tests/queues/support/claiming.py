"""Calls of the scripts that workers call at each job, as flows make them: for the features that the queue uses."""

from redis_kit.queues.engine import calls, claim


def claim_again(queue, token, limit, worker="me", *, again=True):
    """Send a claim, or repeat it as if its answer was lost; return the reply."""

    def step(features):
        return calls.ack_and_claim(queue.key(""), worker, token, limit, again=again, features=features)

    return queue.run_flow(claim.featured(queue, step))


def settle(queue, worker="w", **ends):
    """End attempts; return the reply of the script."""

    def step(features):
        return calls.settle(queue.key(""), worker, features=features, **ends)

    return queue.run_flow(claim.featured(queue, step))
