-- Remove what dead holders left behind in an index, and return the fence: the clock's microseconds or, if `changed` is not
-- 2, one more than the last, so that it grows even after the loss of all data.
-- needs  micros, now
-- gives  next_fence
local function next_fence(index, changed)
    redis.call("ZREMRANGEBYSCORE", index, "-inf", now)
    if changed == 2 then
        return micros
    end
    local fence = math.max(redis.call("ZSCORE", index, "fence") + 1, micros)
    redis.call("ZADD", index, fence, "fence")
    return fence
end
