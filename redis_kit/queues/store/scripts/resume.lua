#!lua flags=allow-oom
-- End a queue's pause, and wake a worker if there is a job.
--
-- KEYS[1]  paused     string  the queue is paused while it exists: since when, ms on the server's clock
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms
-- KEYS[4]  signal     list: one element while a worker is to wake up
-- KEYS[5]  parked     zset of scores 0: what waits for a limit
-- returns  1 when it was paused, 0 when it was not

local paused, ready, scheduled, signal, parked = unpack(KEYS)

-- @include _wake
-- A key of a wrong type prevents nobody from ending a pause, as it prevented nobody from beginning it.
local function count(key)
    local reply = redis.pcall("ZCARD", key)
    return tonumber(reply) or 1
end
local waiting = count(ready) + count(scheduled) + count(parked)
-- @check_types signal
if redis.call("DEL", paused) == 0 then
    return 0
end
if waiting > 0 then
    wake()
end
return 1
