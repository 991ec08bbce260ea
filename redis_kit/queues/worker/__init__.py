"""The worker: a supervisor, its worker processes, and the threads of each that run tasks. One class per role.

``supervisor/``: Supervisor forks processes and runs duties: Heartbeat, Reaper, and those that features bring.
``process``: WorkerProcess starts and stops the rest, and keeps the threads that run jobs.
``fetcher``: Fetcher claims jobs and acknowledges them.
``run/``: JobRunner runs a job through the links that Chains lists, and records how its attempt ends.
Timeouts ends one that takes too long, EventLoop runs asynchronous ones.
``shared/``: Duties runs each duty when it is due, Channel carries commands, StatusBoard shows what a process does.
"""
