#!lua flags=no-writes
-- Return the state of a semaphore, or of a lock that is built like one.
--
-- KEYS[1]  holders  zset: token -> when its lease ends, ms on the server's clock
-- KEYS[2]  about    hash: token -> "<fence> <since> <ttl> <weight> <who>"
-- KEYS[3]  weights  hash: token -> weight, if it is not 1
-- KEYS[4]  limits   zset: limit -> when the last lease acquired under it ends
-- KEYS[5]  limit    string: set by an operator, overrides them
-- KEYS[6]  waiters  zset: token -> until when it counts as a waiter
-- ARGV[1]  count    leases to return
-- returns  {now in ms, as text; slots in use; limit in force, 0 if unknown; 1 if an operator set it; number of waiters;
--          when the last lease ends, as text; token, end and stored text of the leases that end first}

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live = string.format("(%.0f", now)
-- @include _used_slots
-- @include _limit_in_force

local leases = {}
local ends = redis.call("ZRANGEBYSCORE", KEYS[1], live, "+inf", "WITHSCORES", "LIMIT", 0, ARGV[1])
for place = 1, #ends, 2 do
    leases[#leases + 1] = ends[place]
    leases[#leases + 1] = ends[place + 1]
    leases[#leases + 1] = redis.call("HGET", KEYS[2], ends[place])
end
local limit = limit_in_force(KEYS[4], KEYS[5], math.huge)
return {
    string.format("%.0f", now),
    (used_slots(KEYS[1], KEYS[3])),
    limit == math.huge and 0 or limit,
    redis.call("EXISTS", KEYS[5]),
    redis.call("ZCOUNT", KEYS[6], live, "+inf"),
    redis.call("ZRANGE", KEYS[1], -1, -1, "WITHSCORES")[2] or "0",
    leases,
}
