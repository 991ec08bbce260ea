#!lua flags=allow-oom
-- Return what is stored about a call, and note that a caller waits for its end.
--
-- @keys result, jobs, reasons, endings
-- ARGV[1]  id         of the job
-- ARGV[2]  waits      1 when the caller waits, else 0
-- returns  its status, "" when nothing is stored; when it ended, ms; its record; why it died; what the result holds
--
-- While the job exists, it decides, and not what was stored at an earlier end: a dead job may run again.

local id, waits = ARGV[1], ARGV[2] == "1"
-- @include redis_kit.queues.engine:_state_of
local record = redis.call("HGET", jobs, id)
local status, at, reason = "", 0, ""

if record then
    local state, died = state_of(id)
    if state == "dead" then
        status, at, reason = "FAILED", died, redis.call("HGET", reasons, id) or ""
    else
        status, died = state == "running" and "RUNNING" or "READY", nil
    end
    if waits and not died then
        local waiting = tonumber(redis.call("HGET", result, "waiting")) or 0
        redis.call("HSET", result, "waiting", string.format("%.0f", math.max(0, math.min(1e6, waiting)) + 1))
        redis.call("PEXPIRE", result, 3600000, "NX")
    end
else
    local stored = redis.call("HMGET", result, "status", "at", "record")
    status, at, record = stored[1] or "", stored[2] or 0, stored[3] or ""
    local ended, last = string.match(redis.call("HGET", endings, id) or "", "^%l+ (%d+) [^\n]*\n(.*)$")
    if ended then status, at, record = "FAILED", ended, last end  -- its result is stored in a moment
end
return {status, at, record, reason, redis.call("HGETALL", result)}
