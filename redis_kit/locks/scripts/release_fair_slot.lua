#!lua flags=allow-oom
-- Release slots or give up a ticket, and wake the next waiters.
--
-- KEYS[1]  live     zset: kind and name -> when the last lease ends, ms on the server's clock
-- KEYS[2]  holders  zset: token -> when its lease ends
-- KEYS[3]  about    hash: token -> "<fence> <since> <ttl> <weight> <who>"
-- KEYS[4]  weights  hash: token -> weight, if it is not 1
-- KEYS[5]  limits   zset: limit -> when the last lease acquired under it ends
-- KEYS[6]  limit    string of an operator
-- KEYS[7]  waiters  zset: ticket -> until when it counts
-- KEYS[8]  queue    zset: ticket -> sequence number
-- KEYS[9]  tickets  hash: ticket -> "<weight> <list on which its process waits>"
-- ARGV[1]  token    of the lease; its ticket too
-- ARGV[2]  member   kind and name
-- ARGV[3]  limit    how many slots there are
-- returns  1 if slots were released, 0 if this token holds none
--
-- The lists of waiters are data here, not keys: each has the tag of these keys.

local token = ARGV[1]
local holders, about, weights, waiters, queue, tickets = KEYS[2], KEYS[3], KEYS[4], KEYS[7], KEYS[8], KEYS[9]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live = string.format("(%.0f", now)
-- @include _used_slots
-- @include _limit_in_force
-- @include _remove_lease
-- @include _tickets

local waiting = redis.call("ZCARD", queue) + redis.call("HLEN", tickets) + redis.call("ZCARD", waiters) > 0
local held = tonumber(redis.call("ZSCORE", holders, token) or 0) > now
if held then
    remove_lease(redis.call("ZCARD", holders), KEYS[1], ARGV[2], holders, about, weights, KEYS[5])
end
if waiting then
    local dead = redis.call("ZRANGEBYSCORE", waiters, "-inf", now, "LIMIT", 0, 200)
    dead[#dead + 1] = token
    remove_tickets(dead)
    wake_tickets(used_slots(holders, weights), limit_in_force(KEYS[5], KEYS[6], tonumber(ARGV[3])))
end
return held and 1 or 0
