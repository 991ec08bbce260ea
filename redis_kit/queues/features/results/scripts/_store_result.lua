-- Store the end of a call, with the name and the value of one more field, and wake those that wait for it.
-- needs  now
-- gives  store_result
local function store_result(result, finished, ttl_ms, waiting, status, record, name, value)
    redis.call("HSET", result, "status", status, "at", now, "record", record, name, value)
    redis.call("PEXPIRE", result, ttl_ms)
    if waiting then
        redis.call("HDEL", result, "waiting")
        for _ = 1, math.min(100, tonumber(waiting) or 1) do
            redis.call("RPUSH", finished, 1)
        end
        redis.call("PEXPIRE", finished, 10000)
    end
end
