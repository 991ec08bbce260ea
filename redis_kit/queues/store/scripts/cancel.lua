#!lua flags=allow-oom
-- Cancel a job. One that waits is removed, and that is stored as its result, if it has one. The worker of a running job
-- is told at its next heartbeat.
--
-- @keys jobs, ready, scheduled, dead, cancels, result, finished, unique, owners, signal, paused, lanes, limits
-- @keys parked
-- ARGV[1]   id         of the job
-- ARGV[2]   error      stored with the result
-- ARGV[3]   ttl_ms     to store it
-- returns   1 when it was cancelled, 2 when it runs and its worker will be told, 0 when it neither waits nor runs

local id, error, ttl_ms = ARGV[1], ARGV[2], ARGV[3]
local DAY = 24 * 3600 * 1000
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _store_result
-- @include _free_unique_key
-- @include _history
-- @include _wake
-- @include _leave_lane
local any_unique = has_unique_keys()
local record = redis.call("HGET", jobs, id)
local waits = redis.call("ZSCORE", ready, id) or redis.call("ZSCORE", scheduled, id) or waits_in_lane(id)
-- @check_types result, cancels, finished, signal, lanes, limits, parked
if not record or redis.call("ZSCORE", dead, id) then
    return 0
elseif not waits then
    -- Some that ended before a heartbeat took them make room.
    for _, other in ipairs(redis.call("HRANDFIELD", cancels, 10)) do
        if redis.call("HEXISTS", jobs, other) == 0 then redis.call("HDEL", cancels, other) end
    end
    redis.call("HSET", cancels, id, 1)
    redis.call("PEXPIRE", cancels, DAY)
    return 2
end
redis.call("ZREM", ready, id)
redis.call("ZREM", scheduled, id)
if leave_lane(id) then wake() end
redis.call("HDEL", cancels, id)
redis.call("HDEL", jobs, id)
free_unique_key(id, any_unique)
if history_of(record) then
    store_result(result, finished, ttl_ms, redis.call("HGET", result, "waiting"), "FAILED", record, "cancelled", error)
end
return 1
