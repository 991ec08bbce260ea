#!lua flags=allow-oom
-- Cancel a job. One that waits is removed, and that is stored as its result, if it has one. The worker of a running job
-- is told at its next heartbeat.
--
-- @keys jobs, signal, cancels
-- ARGV[1]  id      of the job
-- ARGV[2]  error   stored with the result
-- ARGV[3]  ttl_ms  to store it
-- returns  1 when it was cancelled, 2 when it runs and its worker will be told, 0 when it neither waits nor runs

local id, error, ttl_ms = ARGV[1], ARGV[2], ARGV[3]
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include redis_kit.queues.engine:_features
-- @include redis_kit.queues.engine:_wake
-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_state_of
-- @include redis_kit.queues.engine:_move with any
local record, state = redis.call("HGET", jobs, id), state_of(id)
-- @check_types signal, dead
-- @hook on_check
-- @hook on_cancel
if not record or state == "dead" then
    return 0
elseif state == "running" then
    -- Some that ended before a heartbeat took them make room.
    for _, other in ipairs(redis.call("HRANDFIELD", cancels, 10)) do
        if redis.call("HEXISTS", jobs, other) == 0 then redis.call("HDEL", cancels, other) end
    end
    redis.call("HSET", cancels, id, 1)
    redis.call("PEXPIRE", cancels, 24 * 3600 * 1000)
    use_feature(4)
    return 2
end
if move(id, state, "gone", {}) then wake() end
-- @hook on_cancelled(record, error, ttl_ms)
return 1
