-- Puts a job among the dead ones, of which the oldest make room. Needs _free.
local MONTH = 30 * 24 * 3600 * 1000
local function bury(id, reason)
    redis.call("ZADD", dead, string.format("%.0f", now), id)
    redis.call("HSET", reasons, id, reason)
    local count, oldest = redis.call("ZCARD", dead), redis.call("ZRANGE", dead, 0, 9, "WITHSCORES")
    for at = 1, #oldest, 2 do
        if count <= dead_limit and tonumber(oldest[at + 1]) > now - MONTH then
            break
        end
        redis.call("ZREM", dead, oldest[at])
        redis.call("HDEL", reasons, oldest[at])
        redis.call("HDEL", jobs, oldest[at])
        free(oldest[at])
        count = count - 1
    end
end
