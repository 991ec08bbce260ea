strategies.overrun = {
    -- As fixed_window does, but the first call past a limit is counted as well: a count above the limit says that
    -- somebody tried. Only for calls of one throttle at a cost of 1, without reservations.
    look = function(key, now, cost, rates)
        local stored, counts, room = numbers(redis.call("GET", key) or ""), {}, true
        for place = 1, #rates, 2 do
            local window, count = math.floor(now / rates[place + 1]), 0
            if (stored[place] or 0) >= window then
                count = math.min(stored[place + 1] or 0, rates[place] + 1)
            end
            counts[#counts + 1] = count
            room = room and count + cost <= rates[place]
        end
        return room, counts, true
    end,
    take = function(key, now, cost, rates, counts)
        local state, lasting = {}, 0
        for place, count in ipairs(counts) do
            local limit, period = rates[2 * place - 1], rates[2 * place]
            counts[place] = cost == 0 and count >= limit and limit + 1 or count + cost
            state[place] = string.format("%.0f %.0f", math.floor(now / period), counts[place])
            lasting = math.max(lasting, period - now % period)
        end
        redis.call("SET", key, table.concat(state, " "), "PX", math.ceil(lasting / 1000))
    end
}
