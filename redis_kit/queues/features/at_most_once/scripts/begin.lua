#!lua flags=allow-oom
-- Note that a job begins that runs at most once.
-- One script: only its claim may let it begin, and only once.
--
-- @keys running, jobs, begun
-- ARGV[1]  token  of the claim
-- ARGV[2]  id     of the job
-- returns  1 when it begins, also when repeated; 2 when it has begun by an earlier claim; 0 when the claim was lost
--
-- What has begun is known for as long as the job exists: dead jobs are kept for 30 days.

local token, id = ARGV[1], ARGV[2]

-- @check_types jobs, begun
if not redis.call("ZSCORE", running, token .. "/" .. id) then
    return 0
end
local before = redis.call("HGET", begun, id)
if before then
    return before == token and 1 or 2
end
for _, other in ipairs(redis.call("HRANDFIELD", begun, 10)) do  -- those of jobs that have ended make room
    if redis.call("HEXISTS", jobs, other) == 0 then redis.call("HDEL", begun, other) end
end
redis.call("HSET", begun, id, token)
redis.call("PEXPIRE", begun, 60 * 24 * 3600 * 1000)
return 1
