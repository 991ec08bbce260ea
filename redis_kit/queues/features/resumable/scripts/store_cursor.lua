#!lua flags=allow-oom
-- Store how far a loop of a running job is, and its progress.
--
-- @keys running, cursor, result, jobs
-- ARGV[1]  token     of the claim
-- ARGV[2]  id        of the job
-- ARGV[3]  number    of the loop
-- ARGV[4]  position  how far the loop is
-- ARGV[5]  keep_ms   to store that
-- ARGV[6]  progress  what others see; "" if no result is stored
-- ARGV[7]  ttl_ms    to store the progress
-- ARGV[8]  crashed   1 if workers died with the job before: it goes on, so it is not what killed them; else 0
-- returns  1 when it is stored, 0 when the claim was lost

local token, id, number, position, progress = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_record
-- @check_types cursor, result, jobs
if not redis.call("ZSCORE", running, token .. "/" .. id) then
    return 0
end
redis.call("HSET", cursor, number, position)
redis.call("PEXPIRE", cursor, ARGV[5])
local record = ARGV[8] == "1" and redis.call("HGET", jobs, id)
if record then
    local priority, attempts, _, due, payload = read_record(record)
    redis.call("HSET", jobs, id, record_head(priority, attempts, 0, due) .. payload)
end
if progress ~= "" then
    redis.call("HSET", result, "progress", string.format("%.0f ", now) .. progress)
    redis.call("PEXPIRE", result, ARGV[7])
end
return 1
