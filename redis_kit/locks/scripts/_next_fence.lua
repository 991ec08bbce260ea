-- Return the next fence of slots in a bucket: the clock's microseconds, or more, so that it grows even after the loss of
-- all data. It is stored in the index, beside the end of a name's last lease, which grows at the same time.
-- needs  micros, now, ends
-- gives  next_fence
local function next_fence(index, name)
    if micros % 16 == 0 then -- remove what dead holders left behind
        redis.call("ZREMRANGEBYSCORE", index, "-inf", now)
    end
    if redis.call("ZADD", index, "GT", "CH", micros, "fence", ends, name) == 2 then
        return micros
    end
    local fence = math.max(redis.call("ZSCORE", index, "fence") + 1, micros)
    redis.call("ZADD", index, fence, "fence")
    return fence
end
