#!lua flags=no-writes
-- Tell whether a queue is paused.
--
-- @keys paused
-- returns  since when, ms to the end or -1 without one; nothing when it is not paused

local since = redis.call("GET", paused)
return since and {tonumber(since) or 0, redis.call("PTTL", paused)} or {}
