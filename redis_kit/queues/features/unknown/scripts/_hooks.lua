-- What scripts do about calls that not every worker can run, each part at a hook of theirs.
-- @on on_heartbeat
-- @keys unknown
shapes = redis.call("HGETALL", unknown)
-- @on on_stats
-- @keys unknown
for _, entry in ipairs(redis.call("HVALS", unknown)) do
    local count, first, known, shape = string.match(entry, "^(%d+) (%d+) (%d+) (.*)$")
    for _, item in ipairs(shape and {shape, tonumber(count), now - first, now - known} or {}) do
        table.insert(reply[11], item)
    end
end
-- @on on_kinds
-- @keys unknown, deferred
-- @include _unknown_calls
-- The time between two tries grows with the time since the first one, and with the number of jobs of the shape. So workers look at
-- 50 of them a second, or, as a job waits for at most 10 minutes, at each once in 10 minutes. A job that was due at another time
-- was another job.
function go_on.unfit(job)
    -- @check_types unknown
    local FIRST, LONGEST, EACH = 2000, 600000, 20  -- ms
    local due, shape, digest, longest = select(4, read_record(job.record)), job.reason, job.error, job.delay
    local before = job.id .. "/" .. string.format("%.0f", due)
    local since = tonumber(redis.call("ZSCORE", deferred, before)) or clock[1] * 1000 + clock[2] / 1000
    if job.is_cancelled or now - since >= longest then
        return nil, EXHAUSTED
    end
    redis.call("ZREM", deferred, before)
    local at = now + math.min(LONGEST, math.max(FIRST, now - since, EACH * redis.call("ZCARD", deferred)))
    if job.expires > 0 then
        at = math.min(at, math.max(now + FIRST, due + job.expires + 1))  -- so that its expiry is soon seen
    else
        due = at
    end
    redis.call("ZADD", deferred, string.format("%.3f", since), job.id .. "/" .. string.format("%.0f", due))
    local stored, _, _, known = read_unknown(digest)
    if stored or redis.call("HLEN", unknown) < job.most then
        write_unknown(digest, known or 0, shape)
    end
    for _, key in ipairs({unknown, deferred}) do redis.call("PEXPIRE", key, string.format("%.0f", longest + 2 * LONGEST)) end
    return "scheduled", {due = at, record = uncounted(job.record, due)}
end
