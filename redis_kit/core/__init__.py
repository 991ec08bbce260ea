"""The parts that all components need, and none that only one of them needs.

These modules are the interface for authors of components; docs/howto/component.md shows them at work:

- ``component``, ``panels``: a component, its pages on the dashboard and their buttons
- ``conf``, ``settings``: sections of ``REDIS_KIT``, and its options at the top
- ``primitive``: the base of everything with a name in Redis: keys, failure policy, sync and async calls
- ``flow``, ``steps``, ``scripts``, ``gather``: logic that talks to Redis, its steps, Lua scripts, flows side by side
- ``connections``: clients of the servers
- ``errors``, ``signals``: those that cross components
- ``keys``, ``dates``, ``values.numbers``, ``text``: names in keys, days and numbers as arguments, text for messages
- ``terminal``, ``logs``: output of management commands, and safe logs
- ``activity``: the job that runs now, for the holder of a lock
- ``lazy``: public names that are imported at their first use
- ``web``: the address of the client of a request

``client``, ``embedded`` and ``checks`` are not: they may change in any release.
"""
