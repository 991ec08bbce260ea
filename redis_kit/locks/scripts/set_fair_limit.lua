#!lua flags=allow-oom
-- Set the limit of a fair semaphore that counts instead of all others, or take it back, and wake those who fit then.
--
-- KEYS[1]  holders  zset: token -> when its lease ends, ms on the server's clock
-- KEYS[2]  weights  hash: token -> weight, where that is not 1
-- KEYS[3]  limits   zset: limit -> when the last lease taken under it ends
-- KEYS[4]  limit    string
-- KEYS[5]  waiters  zset: ticket -> until when it counts
-- KEYS[6]  queue    zset: ticket -> sequence number
-- KEYS[7]  tickets  hash: ticket -> "<weight> <list on which its process waits>"
-- ARGV[1]  limit    or nothing
-- ARGV[2]  stated   limit that the caller's code states
-- returns  1
--
-- The lists of waiters are data here and no keys: each has the tag of these keys.

local waiters, queue, tickets = KEYS[5], KEYS[6], KEYS[7]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live = string.format("(%.0f", now)
-- @include _in_use
-- @include _in_force
-- @include _queue

if ARGV[1] == "" then
    redis.call("DEL", KEYS[4])
else
    redis.call("SET", KEYS[4], ARGV[1])
end
wake_tickets(in_use(KEYS[1], KEYS[2]), in_force(KEYS[3], KEYS[4], tonumber(ARGV[2])))
return 1
