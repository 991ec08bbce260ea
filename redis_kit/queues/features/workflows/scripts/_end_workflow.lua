-- End a workflow, and wake those that wait for its end.
-- needs  meta, steps, states, groups, due, active, values, errors, ended, now
-- gives  end_workflow
local function end_workflow(status, ttl_ms)
    local waiting = redis.call("HGET", meta, "waiting")
    redis.call("HSET", meta, "status", status, "ended", now)
    redis.call("HDEL", meta, "waiting")
    for _, key in ipairs({meta, steps, states, groups, due, active, values, errors}) do
        redis.call("PEXPIRE", key, ttl_ms)
    end
    for _ = 1, math.min(100, tonumber(waiting) or 0) do
        redis.call("RPUSH", ended, 1)
    end
    redis.call("PEXPIRE", ended, 10000)
end
