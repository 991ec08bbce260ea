#!lua flags=allow-oom
-- Set the limit of a fair semaphore that overrides all others, or remove it, and wake the waiters that fit then.
--
-- KEYS[1]  holders  zset: token -> when its lease ends, ms on the server's clock
-- KEYS[2]  weights  hash: token -> weight, if it is not 1
-- KEYS[3]  limits   zset: limit -> when the last lease acquired under it ends
-- KEYS[4]  limit    string
-- KEYS[5]  waiters  zset: ticket -> until when it counts
-- KEYS[6]  queue    zset: ticket -> sequence number
-- KEYS[7]  tickets  hash: ticket -> "<weight> <list on which its process waits>"
-- ARGV[1]  limit    or empty
-- ARGV[2]  stated   limit stated by the caller's code
-- returns  1
--
-- The lists of waiters are data here, not keys: each has the tag of these keys.

local waiters, queue, tickets = KEYS[5], KEYS[6], KEYS[7]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live = string.format("(%.0f", now)
-- @include _used_slots
-- @include _limit_in_force
-- @include _tickets

-- @check_types holders, weights, limits, waiters, queue, tickets
if ARGV[1] == "" then
    redis.call("DEL", KEYS[4])
else
    redis.call("SET", KEYS[4], ARGV[1])
end
wake_tickets(used_slots(KEYS[1], KEYS[2]), limit_in_force(KEYS[3], KEYS[4], tonumber(ARGV[2])))
return 1
