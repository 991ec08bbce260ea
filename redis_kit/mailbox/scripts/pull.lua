#!lua flags=allow-oom
-- Lease the first messages of an inbox that have no lease.
--
-- KEYS[1]  messages  hash: number -> message, and how many are missed
-- KEYS[2]  numbers   zset: the numbers of the messages
-- KEYS[3]  leases    zset: number -> when its lease ends, ms
-- ARGV[1]  limit     messages at most
-- ARGV[2]  ttl       of the leases, ms
-- returns  how many are missed, the time until the first lease ends, ms, the numbers, and the messages

local messages, numbers, leases = unpack(KEYS)
-- @check_types messages, numbers, leases
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call("ZREMRANGEBYSCORE", leases, "-inf", now)
local leased = redis.call("ZCARD", leases)
local limit, found = math.min(ARGV[1], 1000 - leased), {}
for _, number in ipairs(limit > 0 and redis.call("ZRANGE", numbers, 0, leased + limit - 1) or {}) do
    if #found < limit and not redis.call("ZSCORE", leases, number) then
        redis.call("ZADD", leases, now + ARGV[2], number)
        found[#found + 1] = number
    end
end
local entries = #found > 0 and redis.call("HMGET", messages, unpack(found)) or {}
local pause = (redis.call("ZRANGE", leases, 0, 0, "WITHSCORES")[2] or now) - now
return {tonumber(redis.call("HGET", messages, "missed") or "0"), pause, found, entries}
