#!lua flags=allow-oom
-- Release slots or give up a ticket, and wake the next waiters.
--
-- KEYS[1]  live     zset: kind and name -> when the last lease ends at the latest, ms on the server's clock
-- KEYS[2]  lease    string, until the lease ends
-- KEYS[3]  holders  zset: "<token> <limit>" and the weight, if it is not 1 -> when the lease ends
-- KEYS[4]  limits   zset: limit -> when the last lease acquired under it ends, if leases were acquired under several
-- KEYS[5]  limit    string of an operator
-- KEYS[6]  waiters  zset: ticket -> until when it counts
-- KEYS[7]  queue    zset: ticket -> sequence number
-- KEYS[8]  tickets  hash: ticket -> "<weight> <list on which its process waits>"
-- ARGV[1]  slots    "<token> <limit>" with the weight, as among the holders; the token is the ticket too
-- ARGV[2]  member   kind and name
-- ARGV[3]  weight   if it is not 1, or ARGV[4] follows
-- ARGV[4]  unsure   "1" if the lease may have been released before, or not acquired, so that it does not count as lost
-- returns  1 if slots were released, 0 if this token holds none
--
-- The lists of waiters are data here, not keys: each has the tag of these keys.

local holders, limits, waiters, queue, tickets = KEYS[3], KEYS[4], KEYS[6], KEYS[7], KEYS[8]
local slots, weight = ARGV[1], ARGV[3]
local waits = redis.call("EXISTS", queue) == 1
if waits then
    -- @check_types waiters, queue, tickets
end
local held = redis.call("ZREM", holders, slots) == 1
if held and weight then
    if tonumber(redis.call("ZINCRBY", holders, 1 - weight, "extra")) <= 0 then
        redis.call("ZREM", holders, "extra")
    end
end
local found = redis.call("EXISTS", holders, limits)
if held and (found == 0 or redis.call("EXISTS", holders) == 0) then
    redis.call("ZREM", KEYS[1], ARGV[2])
    if found > 0 then redis.call("DEL", limits) end
end
-- Now: a key of a wrong type leaves the lease as it is.
held = redis.call("DEL", KEYS[2]) == 1 and held
if not held and not ARGV[4] then
-- @include _statistics
    count_in_history(KEYS[1], 0, 0, 0, 0, 1)
end
if not waits then
    return held and 1 or 0
end

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local token, limit = string.match(slots, "^(%w+) (%d+)")
-- @include _used_slots
-- @include _tickets
local dead = redis.call("ZRANGEBYSCORE", waiters, "-inf", now, "LIMIT", 0, 200)
dead[#dead + 1] = token
remove_tickets(dead)
local used, _, _, first = used_slots(holders)
wake_tickets(used, (limit_in_force(first, false, limits, KEYS[5], tonumber(limit))))
return held and 1 or 0
