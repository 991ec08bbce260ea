#!lua flags=no-writes
-- List the callers that have a rule, first whose rule ends first.
--
-- KEYS[1]  rules     zset: caller -> when its rule ends, ms
-- KEYS[2]  override  string: the rates for everybody
-- ARGV[1]  now       microseconds, for a clock of one's own; "" for the server's
-- ARGV[2]  most      callers to return
-- returns  {how many rules there are, that for everybody too; the callers}

local clock = redis.call("TIME")
local now = tonumber(ARGV[1]) or clock[1] * 1000000 + clock[2]
local since = string.format("(%.0f", math.floor(now / 1000))
local held = redis.call("ZCOUNT", KEYS[1], since, "+inf") + redis.call("EXISTS", KEYS[2])
return {held, redis.call("ZRANGEBYSCORE", KEYS[1], since, "+inf", "LIMIT", 0, ARGV[2])}
