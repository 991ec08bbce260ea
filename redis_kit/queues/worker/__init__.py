"""The worker: a supervisor, its worker processes, and the threads of each that run tasks. One class per role.

``supervisor/``: Supervisor forks processes and has duties, such as Heartbeat and Reaper. Features bring others of these.
``process/``: WorkerProcess starts and stops the rest, ThreadPool keeps the threads.
``fetch/``: Fetcher claims jobs and acknowledges them, Listener wakes it.
``run/``: JobRunner runs a job, Timeouts ends one that takes too long, EventLoop runs asynchronous ones.
``shared/``: Duties runs each duty when it is due, Channel carries commands to a process, StatusBoard shows its supervisor what it does.
"""
