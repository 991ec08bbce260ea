-- Keeps what became of a call, with the name and the value of what is to be told of it, and wakes those who wait for it.
local ended_at = string.format("%.0f", now)
local function keep(result, finished, ttl, waiting, status, record, name, value)
    redis.call("HSET", result, "status", status, "at", ended_at, "record", record, name, value)
    redis.call("PEXPIRE", result, ttl)
    if waiting then
        redis.call("HDEL", result, "waiting")
        for _ = 1, math.min(100, tonumber(waiting) or 1) do
            redis.call("RPUSH", finished, 1)
        end
        redis.call("PEXPIRE", finished, 10000)
    end
end
