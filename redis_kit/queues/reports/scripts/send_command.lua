#!lua
-- Store a command for a worker, which takes it with its next heartbeat.
--
-- @keys workers, orders
-- ARGV[1]  worker
-- ARGV[2]  command  quiet, work or stop
-- ARGV[3]  ttl_ms   after which a command that was not taken is void
-- returns  1 when it was stored, 0 when the worker does not exist or its lease is over

-- @check_types orders
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if tonumber(redis.call("ZSCORE", workers, ARGV[1]) or 0) < now then
    return 0
end
redis.call("HSET", orders, ARGV[1], ARGV[2], ARGV[1] .. "/until", string.format("%.0f", now + ARGV[3]))
redis.call("PEXPIRE", orders, ARGV[3])
return 1
