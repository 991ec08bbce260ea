-- The generic cell rate algorithm, as leaky buckets.
-- needs  strategies, doubles
-- gives  strategies.gcra

local min, max, ceil = math.min, math.max, math.ceil

strategies.gcra = {
    -- Figures are the levels. For each rate the state holds the time at which its bucket is empty, in 8 bytes, which
    -- takes the least memory. If that may not be a whole microsecond, the state holds the time of the call as a number
    -- below 0 and then the levels, so that levels are always exact. After the clock went back, levels rise again, to the
    -- capacity at most.
    look = function(key, now, cost, rates)
        local count, levels, room, back = ceil(#rates / 3), {}, true, false
        local stored = doubles(string.sub(redis.call("GET", key) or "", 1, 8 * count + 8))
        local moment = (stored[1] or 0) < 0 and -1 - stored[1]
        for index = 1, count do
            local drain, price, capacity = rates[3 * index - 2], rates[3 * index - 1], rates[3 * index]
            local level = ((stored[index] or 0) - now) * drain
            if moment then
                level = (stored[index + 1] or 0) - (now - moment) * drain
            end
            back = back or level > capacity
            level = max(0, min(level, capacity))
            levels[index] = level
            room = room and level + min(cost * price, capacity) <= capacity
        end
        return room, levels, back
    end,
    take = function(key, now, cost, rates, levels)
        local ttl, ends, whole = 0, {}, true
        for index, level in ipairs(levels) do
            local drain, price, capacity = rates[3 * index - 2], rates[3 * index - 1], rates[3 * index]
            level = min(level + cost * price, capacity)
            levels[index], ends[index], whole = level, now + level, whole and drain == 1 and now + level < 2 ^ 53
            ttl = max(ttl, ceil(level / drain / 1000))
        end
        if not whole then
            ends = {-1 - now, unpack(levels)}
        end
        redis.call("SET", key, struct.pack("<" .. string.rep("d", #ends), unpack(ends)), "PX", ttl + 1)
    end,
    -- Refund only what can't have drained since ``stamp``, when the level was that of the figures: if the bucket became
    -- empty, or may have, the call has drained.
    give = function(key, now, stamp, amount, rates, before)
        local _, levels = strategies.gcra.look(key, now, 0, rates)
        for index, level in ipairs(levels) do
            local drain, price, capacity = rates[3 * index - 2], rates[3 * index - 1], rates[3 * index]
            local change = amount * price
            if amount > 0 then
                change = max(0, min(change, (before[index] or 0) - (now - stamp) * drain))
            end
            levels[index] = max(0, min(level - change, capacity))
        end
        strategies.gcra.take(key, now, 0, rates, levels)
    end
}
