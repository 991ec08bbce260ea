#!lua flags=no-writes
-- Return the state of a semaphore, or of a lock that is built like one.
--
-- KEYS[1]  holders  zset: "<token> <limit>" and the weight, if it is not 1 -> when the lease ends, ms on the server's clock
-- KEYS[2]  limits   zset: limit -> when the last lease acquired under it ends, if leases were acquired under several
-- KEYS[3]  limit    string: set by an operator, overrides them
-- KEYS[4]  waiters  zset: token -> until when it counts as a waiter
-- KEYS[5]  lease    what the keys of leases begin with, each a string "<seconds> <micros> <limits> <weight> <ttl> <who>"
-- ARGV[1]  count    leases to return
-- returns  {now in ms, as text; slots in use; limit in force, 0 if unknown; 1 if an operator set it; number of waiters;
--          when the last lease ends, as text; entry, end and stored text of the leases that end first}

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live = "(" .. now
-- @include _used_slots

local leases = {}
local ends = redis.call("ZRANGEBYSCORE", KEYS[1], live, "+inf", "WITHSCORES", "LIMIT", 0, ARGV[1])
for place = 1, #ends, 2 do
    leases[#leases + 1] = ends[place]
    leases[#leases + 1] = ends[place + 1]
    leases[#leases + 1] = redis.call("GET", KEYS[5] .. ":" .. string.match(ends[place], "^%S+"))
end
local used, _, _, first = used_slots(KEYS[1])
local limit = limit_in_force(first, false, KEYS[2], KEYS[3], math.huge)
return {
    string.format("%.0f", now),
    used,
    limit == math.huge and 0 or limit,
    redis.call("EXISTS", KEYS[3]),
    redis.call("ZCOUNT", KEYS[4], live, "+inf"),
    redis.call("ZRANGE", KEYS[1], -1, -1, "WITHSCORES")[2] or "0",
    leases,
}
