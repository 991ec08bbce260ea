"""The worker: a process with threads that run tasks. One class per loop.

Launcher starts and stops the others. Fetcher claims jobs, Listener wakes it, Manager hands the jobs to threads,
Processor runs them, Deadlines ends those that take too long, Beat keeps the worker alive and reaps what dead ones held.
"""
