#!lua flags=allow-oom
-- End a queue's pause, and wake a worker where there is something to do.
--
-- KEYS[1]  paused     the queue is paused while it exists: since when, ms on the server's clock
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms
-- KEYS[4]  signal     list: one element while a worker should look
-- returns  1 when it was paused, 0 when it was not

local paused, ready, scheduled, signal = unpack(KEYS)

-- @include _wake
local waiting = redis.call("ZCARD", ready) + redis.call("ZCARD", scheduled)
redis.call("LLEN", signal)
if redis.call("DEL", paused) == 0 then
    return 0
end
if waiting > 0 then
    wake()
end
return 1
