#!lua flags=allow-oom
-- Pause a queue, or change the end of its pause.
--
-- @keys paused, signal
-- ARGV[1]  time    length of the pause, ms; 0 until it is resumed
-- returns  1
--
-- A worker is woken, so that it reads the end of the pause, until which it sleeps.

local time = tonumber(ARGV[1])
local clock = redis.call("TIME")
local since = redis.call("GET", paused) or string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
-- @include _features
-- @check_types signal
use_feature(PAUSED)

if time == 0 then
    redis.call("SET", paused, since)
    return 1
end
redis.call("SET", paused, since, "PX", time)
if redis.call("LLEN", signal) == 0 then
    redis.call("RPUSH", signal, 1)
    redis.call("PEXPIRE", signal, 10000)
end
return 1
