#!lua flags=no-writes
-- Count a queue's jobs by state, at one moment.
--
-- @keys scheduled, ready, running, dead
-- returns  how many are scheduled, ready, running, dead; those that wait for a limit are ready

local waiting = redis.call("ZCARD", ready)
-- @hook on_count(waiting)
return {redis.call("ZCARD", scheduled), waiting, redis.call("ZCARD", running), redis.call("ZCARD", dead)}
