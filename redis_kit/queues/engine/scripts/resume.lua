#!lua flags=allow-oom
-- End a queue's pause, and wake a worker if there is a job.
--
-- @keys paused, ready, scheduled, signal
-- returns  1 when it was paused, 0 when it was not


-- @include _wake
-- A key of a wrong type prevents nobody from ending a pause, as it prevented nobody from beginning it.
local function count(key)
    local reply = redis.pcall("ZCARD", key)
    return tonumber(reply) or 1
end
local waiting = count(ready) + count(scheduled)
-- @hook on_resume(waiting, count)
-- @check_types signal
if redis.call("DEL", paused) == 0 then
    return 0
end
if waiting > 0 then
    wake()
end
return 1
