"""The backend of ``django.tasks`` whose tasks run on Celery's workers."""

from redis_kit.queues.backend import RedisTaskBackend
from redis_kit.queues.features.celery import tasks
from redis_kit.queues.settings import CELERY

RUN = tasks.RUN  # whoever loads the backend has the task of Celery that runs jobs


class CeleryTaskBackend(RedisTaskBackend):
    """A task backend. ``rk_worker`` hands due jobs over to Celery, whose workers claim them and run the tasks.

    Results, retries, priorities and all else are those of RedisTaskBackend, which stores them.
    """

    sink = CELERY
