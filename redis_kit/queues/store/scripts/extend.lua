#!lua flags=allow-oom
-- Extend the lease of the worker that has a job.
--
-- KEYS[1]  running  zset of scores 0: worker/claim.number/place/id
-- KEYS[2]  workers  zset: worker -> when its lease ends, ms on the server's clock
-- ARGV[1]  member   worker/claim.number/place/id
-- ARGV[2]  worker
-- ARGV[3]  lease    ms
-- returns  1 when the claim holds, 0 when it had been lost

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local running, workers = unpack(KEYS)
-- @check_types workers
if not redis.call("ZSCORE", KEYS[1], ARGV[1]) then
    return 0
end
redis.call("ZADD", KEYS[2], string.format("%.0f", now + ARGV[3]), ARGV[2])
return 1
