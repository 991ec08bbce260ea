"""The worker: a supervisor, its children, and the threads of each that run tasks. One class per loop.

Supervisor forks children and sees to what dead ones leave: Beat keeps their leases alive, Reaper gives their jobs back,
Line carries orders, Board shows what each does. In a child Launcher starts and stops the others: Fetcher claims jobs,
Listener wakes it, Duties remember what it must not keep from other workers, Manager keeps the threads, Processor runs
the jobs, Deadlines ends those that take too long, and Coroutines has the event loop of asynchronous ones.
"""
