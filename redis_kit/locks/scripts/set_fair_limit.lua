#!lua flags=allow-oom
-- Set the limit of a fair semaphore that overrides all others, or remove it, and wake the waiters that fit then.
--
-- KEYS[1]  holders  zset: "<token> <limit>" and the weight, if it is not 1 -> when the lease ends, ms on the server's clock
-- KEYS[2]  limits   zset: limit -> when the last lease acquired under it ends, if leases were acquired under several
-- KEYS[3]  limit    string
-- KEYS[4]  waiters  zset: ticket -> until when it counts
-- KEYS[5]  queue    zset: ticket -> sequence number
-- KEYS[6]  tickets  hash: ticket -> "<weight> <list on which its process waits>"
-- ARGV[1]  limit    or empty
-- ARGV[2]  stated   limit stated by the caller's code
-- returns  1
--
-- The lists of waiters are data here, not keys: each has the tag of these keys.

local waiters, queue, tickets = KEYS[4], KEYS[5], KEYS[6]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @include _used_slots
-- @include _limit_in_force
-- @include _tickets

-- @check_types holders, limits, waiters, queue, tickets
if ARGV[1] == "" then
    redis.call("DEL", KEYS[3])
else
    redis.call("SET", KEYS[3], ARGV[1])
end
local used, _, _, first = used_slots(KEYS[1])
wake_tickets(used, (limit_in_force(first, false, KEYS[2], KEYS[3], tonumber(ARGV[2]))))
return 1
