-- Put a job among the dead jobs; the oldest of these make room, and those of more than 30 days.
-- needs  dead, reasons, jobs, lanes, now, dead_limit, free_unique_key
-- gives  drop_oldest, bury_job
local MONTH = 30 * 24 * 3600 * 1000
local function drop_oldest(any_unique)
    local count, oldest = redis.call("ZCARD", dead), redis.call("ZRANGE", dead, 0, 9, "WITHSCORES")
    for at = 1, #oldest, 2 do
        if count <= dead_limit and tonumber(oldest[at + 1]) > now - MONTH then
            break
        end
        redis.call("ZREM", dead, oldest[at])
        redis.call("HDEL", reasons, oldest[at])
        redis.call("HDEL", jobs, oldest[at])
        redis.call("HDEL", lanes, oldest[at])
        free_unique_key(oldest[at], any_unique)
        count = count - 1
    end
end

local function bury_job(id, reason, any_unique)
    redis.call("ZADD", dead, string.format("%.0f", now), id)
    redis.call("HSET", reasons, id, reason)
    drop_oldest(any_unique)
end
