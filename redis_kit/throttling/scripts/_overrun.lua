-- Fixed windows that record whether a call was refused.
-- needs  strategies, numbers
-- gives  strategies.overrun

strategies.overrun = {
    -- As fixed_window, but the first call beyond a limit is counted too: a count above the limit tells that there was
    -- one. Only for calls of one throttle at a cost of 1, without reservations.
    look = function(key, now, cost, rates)
        local stored, counts, room = numbers(redis.call("GET", key) or ""), {}, true
        for index = 1, #rates, 2 do
            local window, count = math.floor(now / rates[index + 1]), 0
            if (stored[index] or 0) >= window then
                count = math.min(stored[index + 1] or 0, rates[index] + 1)
            end
            counts[#counts + 1] = count
            room = room and count + cost <= rates[index]
        end
        return room, counts, true
    end,
    take = function(key, now, cost, rates, counts)
        local state, ttl = {}, 0
        for index, count in ipairs(counts) do
            local limit, period = rates[2 * index - 1], rates[2 * index]
            counts[index] = cost == 0 and count >= limit and limit + 1 or count + cost
            state[index] = string.format("%.0f %.0f", math.floor(now / period), counts[index])
            ttl = math.max(ttl, period - now % period)
        end
        redis.call("SET", key, table.concat(state, " "), "PX", math.ceil(ttl / 1000))
    end
}
