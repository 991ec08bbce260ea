"""No job is lost: many jobs run while worker processes, supervisors, whole machines and the server are killed.

    python -m benchmarks chaos 100000

It exits with 1 if the checker of ``tests/chaos/queues`` finds a violation. It takes at most ten minutes; the seed
that it prints brings the same jobs and the same order of kills again: ``python -m benchmarks chaos 100000 7``.
"""

import os
import secrets
import sys

import django
from django.conf import settings

JOBS = 100_000
LONG = 60.0  # seconds: a job that takes six leases


def run(jobs: int = JOBS, seed: int | None = None) -> None:
    """Run them, then one job that takes six leases; print the figures and the violations."""
    if not settings.configured:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        django.setup()
    from tests.chaos.queues import kill_loop
    from tests.chaos.queues.kill_loop import Plan

    seed = secrets.randbelow(1_000_000) if seed is None else seed
    long_job = Plan(jobs=1, mix={"lasting": 1}, lasting=LONG, threads=1, most=0, seed=seed, patience=2 * LONG)
    violations = []
    for name, plan in (("kills at random", Plan(jobs=jobs, seed=seed, patience=300)), ("one long job", long_job)):
        outcome = kill_loop.run(plan)
        print(f"{name}, seed {plan.seed}: {outcome}\n")
        violations += outcome.violations
    if violations:
        print(f"{len(violations)} things must not be as they were.", file=sys.stderr)
        raise SystemExit(1)
