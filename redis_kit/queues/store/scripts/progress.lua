#!lua flags=allow-oom
-- Keep how far a running job is.
--
-- KEYS[1]  running   zset of scores 0: worker/claim.number/place/id
-- KEYS[2]  result    hash: what is known of the call
-- ARGV[1]  token     of the claim
-- ARGV[2]  id        of the job
-- ARGV[3]  progress  what the task tells
-- ARGV[4]  keep      ms for which that is kept
-- returns  1 when it is kept, 0 when the claim had been lost

local running, result = unpack(KEYS)
local token, id, progress, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

if not redis.call("ZSCORE", running, token .. "/" .. id) then
    return 0
end
redis.call("HSET", result, "progress", string.format("%.0f ", now) .. progress)
redis.call("PEXPIRE", result, ttl)
return 1
