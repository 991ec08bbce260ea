-- Keeps what became of a call, and wakes those who wait for it.
local function note(record, error)
    local _, attempts = string.gsub(string.match(record, "\n(~[^\n]*)\n") or "", " ", "")
    redis.call("HSET", result, "error" .. attempts, error)
    redis.call("PEXPIRE", result, ttl)
end

local function keep(status, record)
    local waiting = tonumber(redis.call("HGET", result, "waiting") or 0)
    redis.call("HSET", result, "status", status, "at", string.format("%.0f", now), "record", record)
    redis.call("HDEL", result, "waiting")
    redis.call("PEXPIRE", result, ttl)
    for _ = 1, math.min(100, waiting) do
        redis.call("RPUSH", finished, 1)
        redis.call("PEXPIRE", finished, 10000)
    end
end
