"""What happens to jobs, for those who want to know. Receivers run in the process in which it happened."""

from django.dispatch import Signal

# queue, id: a job was stored. Sent by the process that put it.
job_enqueued = Signal()
# queue, job, task: an attempt begins. This and the next ones are sent by a worker.
job_started = Signal()
# queue, job, task: an attempt succeeded, and that was recorded.
job_succeeded = Signal()
# queue, job, task, error: an attempt failed, and there will be another.
job_retried = Signal()
# queue, id, reason: a job is dead. Its task may be unknown, as may be what it held.
job_dead = Signal()
# worker, queues: a process of a worker begins to work. Sent in that process, as is the next one.
worker_started = Signal()
# worker, queues: it runs no more jobs, and is about to end. Not sent where it is killed.
worker_stopping = Signal()
