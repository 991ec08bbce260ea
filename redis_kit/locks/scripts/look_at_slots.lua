#!lua flags=no-writes
-- Tell all about a semaphore, or about what is built like one.
--
-- KEYS[1]  holders  zset: token -> when its lease ends, ms on the server's clock
-- KEYS[2]  about    hash: token -> "<fence> <since> <ttl> <weight> <who>"
-- KEYS[3]  weights  hash: token -> weight, of those that weigh more than 1
-- KEYS[4]  limits   zset: limit -> when the last lease taken under it ends
-- KEYS[5]  limit    string: what an operator set instead of these
-- KEYS[6]  waiters  zset: token -> until when it counts as a waiter
-- ARGV[1]  most     slots to return
-- returns  {now in ms, as text; slots in use; limit in force, 0 when unknown; 1 when an operator set it; how many wait;
--          when the last lease ends, as text; token, end and what is stored about it of the leases that end first}

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local live = string.format("(%.0f", now)
-- @include _in_use
-- @include _in_force

local found = {}
local ends = redis.call("ZRANGEBYSCORE", KEYS[1], live, "+inf", "WITHSCORES", "LIMIT", 0, ARGV[1])
for place = 1, #ends, 2 do
    found[#found + 1] = ends[place]
    found[#found + 1] = ends[place + 1]
    found[#found + 1] = redis.call("HGET", KEYS[2], ends[place])
end
local limit = in_force(KEYS[4], KEYS[5], math.huge)
return {
    string.format("%.0f", now),
    (in_use(KEYS[1], KEYS[3])),
    limit == math.huge and 0 or limit,
    redis.call("EXISTS", KEYS[5]),
    redis.call("ZCOUNT", KEYS[6], live, "+inf"),
    redis.call("ZRANGE", KEYS[1], -1, -1, "WITHSCORES")[2] or "0",
    found,
}
