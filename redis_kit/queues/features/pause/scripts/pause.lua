#!lua flags=allow-oom
-- Pause a queue, change the end of its pause, or end it.
--
-- @keys paused
-- ARGV[1]  time  length of the pause, ms; 0 until it is resumed, -1 to resume it now
-- returns  1 when it was paused, 0 when it was not
--
-- A worker is woken, so that it claims jobs, or reads the end of the pause, until which it sleeps.

local time = tonumber(ARGV[1])
local clock = redis.call("TIME")
local was_paused = redis.call("EXISTS", paused)
local since = time >= 0 and redis.call("GET", paused) or string.format("%.0f", clock[1] * 1000 + math.floor(clock[2] / 1000))
-- @include redis_kit.queues.engine:_features
-- @include redis_kit.queues.engine:_wake
-- @check_types signal
redis.call("DEL", paused)
if time > 0 or was_paused == 1 then wake() end
if time >= 0 then
    use_feature(16)
    redis.call("SET", paused, since)
end
if time > 0 then redis.call("PEXPIRE", paused, time) end
return was_paused
