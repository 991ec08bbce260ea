local min, max, ceil = math.min, math.max, math.ceil

strategies.gcra = {
    -- Figures are the levels. Stored is for each rate when its bucket will be empty, in 8 bytes, which take the least
    -- room. Where that need not be a whole microsecond, stored are the moment, below 0, and then the levels, so that a
    -- level is always exact. A clock that went back raises levels again, to the capacity at most.
    look = function(key, now, cost, rates)
        local count, levels, room, back = ceil(#rates / 3), {}, true, false
        local stored = doubles(string.sub(redis.call("GET", key) or "", 1, 8 * count + 8))
        local moment = (stored[1] or 0) < 0 and -1 - stored[1]
        for place = 1, count do
            local drain, price, capacity = rates[3 * place - 2], rates[3 * place - 1], rates[3 * place]
            local level = ((stored[place] or 0) - now) * drain
            if moment then
                level = (stored[place + 1] or 0) - (now - moment) * drain
            end
            back = back or level > capacity
            level = max(0, min(level, capacity))
            levels[place] = level
            room = room and level + min(cost * price, capacity) <= capacity
        end
        return room, levels, back
    end,
    take = function(key, now, cost, rates, levels)
        local lasting, ends, whole = 0, {}, true
        for place, level in ipairs(levels) do
            local drain, price, capacity = rates[3 * place - 2], rates[3 * place - 1], rates[3 * place]
            level = min(level + cost * price, capacity)
            levels[place], ends[place], whole = level, now + level, whole and drain == 1 and now + level < 2 ^ 53
            lasting = max(lasting, ceil(level / drain / 1000))
        end
        if not whole then
            ends = {-1 - now, unpack(levels)}
        end
        redis.call("SET", key, struct.pack("<" .. string.rep("d", #ends), unpack(ends)), "PX", lasting + 1)
    end,
    -- Given back is what of the level at ``stamp``, the figures of then, can't have drained since: where the bucket ran
    -- empty, or may have, the call had left it by itself.
    give = function(key, now, stamp, amount, rates, before)
        local _, levels = strategies.gcra.look(key, now, 0, rates)
        for place, level in ipairs(levels) do
            local drain, price, capacity = rates[3 * place - 2], rates[3 * place - 1], rates[3 * place]
            local change = amount * price
            if amount > 0 then
                change = max(0, min(change, (before[place] or 0) - (now - stamp) * drain))
            end
            levels[place] = max(0, min(level - change, capacity))
        end
        strategies.gcra.take(key, now, 0, rates, levels)
    end
}
