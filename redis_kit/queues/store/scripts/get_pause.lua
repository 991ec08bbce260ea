#!lua flags=no-writes
-- Tell whether a queue is paused.
--
-- KEYS[1]  paused  string  the queue is paused while it exists: since when, ms on the server's clock
-- returns  since when, ms to the end or -1 without one; nothing when it is not paused

local since = redis.call("GET", KEYS[1])
return since and {tonumber(since) or 0, redis.call("PTTL", KEYS[1])} or {}
