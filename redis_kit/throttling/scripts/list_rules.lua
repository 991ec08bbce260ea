#!lua flags=no-writes
-- List the identities that have a rule, in the order in which their rules end.
--
-- KEYS[1]  rules     zset: entry -> when the rule ends, ms
-- KEYS[2]  override  string: the override for all identities
-- ARGV[1]  now       microseconds for a custom clock; "" for the server's clock
-- ARGV[2]  limit     entries to return
-- returns  {number of rules, with the override for all; the entries}

local clock = redis.call("TIME")
local now = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
local since = string.format("(%.0f", math.floor(now / 1000))
local count = redis.call("ZCOUNT", KEYS[1], since, "+inf") + redis.call("EXISTS", KEYS[2])
return {count, redis.call("ZRANGEBYSCORE", KEYS[1], since, "+inf", "LIMIT", 0, ARGV[2])}
