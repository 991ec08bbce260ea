#!lua flags=allow-oom
-- Store the progress of a running job.
--
-- @keys running, result
-- ARGV[1]  token     of the claim
-- ARGV[2]  id        of the job
-- ARGV[3]  progress  what the task reports
-- ARGV[4]  ttl_ms    to store it
-- returns  1 when it is stored, 0 when the claim was lost

local token, id, progress, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

if not redis.call("ZSCORE", running, token .. "/" .. id) then
    return 0
end
redis.call("HSET", result, "progress", string.format("%.0f ", now) .. progress)
redis.call("PEXPIRE", result, ttl_ms)
return 1
