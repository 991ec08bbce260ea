-- next_fence returns the next fence of slots in a bucket: the clock's microseconds, or more, so that it grows even after the
-- loss of all data. It is stored in the index, beside the end of a name's last lease, which grows at the same time.
-- store_slots stores slots of a lease on one level; true if it had none there. `held`: others have slots; `other` is the
-- limit of one of them, unless it is the same for all.
-- store_lease stores what a lease is, and returns its fence: the new one, or the one that this very attempt has from before.
-- Seconds and microseconds are stored apart, since the clock gives them so.
-- needs  own, about, clock, micros, now, weight, ends
-- gives  next_fence, store_slots, store_lease
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

local function store_slots(slots, held, other, limit, holders, limits)
    if other and (other ~= limit or redis.call("EXISTS", limits) == 1) then
        local last = tonumber(redis.call("ZRANGE", holders, -1, -1, "WITHSCORES")[2])
        redis.call("ZREMRANGEBYSCORE", limits, "-inf", now)
        redis.call("ZADD", limits, "NX", last, other)
        redis.call("ZADD", limits, "GT", ends, limit)
        redis.call("PEXPIREAT", limits, math.max(last, ends))
    end
    local added = redis.call("ZADD", holders, ends, slots) == 1
    if added and weight > 1 then
        redis.call("ZINCRBY", holders, weight - 1, "extra")
    end
    if held then
        redis.call("PEXPIREAT", holders, ends, "GT")
    else
        redis.call("PEXPIREAT", holders, ends)
    end
    return added
end

local function store_lease(is_new, fence)
    local seconds, rest = clock[1], clock[2]
    if not is_new or fence ~= micros then
        local before = not is_new and redis.call("GET", own) or ""
        seconds, rest = string.match(before, "^(%d+) (%d+) ")
        seconds, rest = seconds or math.floor(fence / 1000000), rest or fence % 1000000
        fence = seconds * 1000000 + rest
    end
    redis.call("SET", own, seconds .. " " .. rest .. " " .. about, "PXAT", ends - 1)
    return fence
end
