strategies.sliding_counter = {
    -- Stored are, for each rate, the number of its window, that window's count and the last one's; figures are both
    -- counts. A clock that went back finds the later window's counts in the present one.
    look = function(key, now, cost, rates)
        local stored, counts, room, back = numbers(redis.call("GET", key) or ""), {}, true, false
        for place = 1, #rates, 2 do
            local limit, period, kept = rates[place], rates[place + 1], (place - 1) / 2 * 3
            local window, then_ = math.floor(now / period), stored[kept + 1] or 0
            local current, previous = 0, 0
            if then_ >= window then
                current, previous = stored[kept + 2] or 0, stored[kept + 3] or 0
                back = back or then_ > window
            elseif then_ == window - 1 then
                previous = stored[kept + 2] or 0
            end
            current, previous = math.min(current, limit), math.min(previous, limit)
            counts[place], counts[place + 1] = current, previous
            local left = limit - current - math.min(cost, limit)
            room = room and left * period >= previous * (period - now % period)
        end
        return room, counts, back
    end,
    take = function(key, now, cost, rates, counts)
        local state, lasting = {}, 0
        for place = 1, #rates, 2 do
            local period = rates[place + 1]
            counts[place] = math.min(counts[place] + cost, rates[place])
            state[#state + 1] = string.format("%.0f %.0f %.0f", math.floor(now / period), counts[place], counts[place + 1])
            lasting = math.max(lasting, 2 * period - now % period)
        end
        redis.call("SET", key, table.concat(state, " "), "PX", math.ceil(lasting / 1000))
    end,
    give = function(key, now, stamp, amount, rates)
        local _, counts = strategies.sliding_counter.look(key, now, 0, rates)
        for place = 1, #rates, 2 do
            local behind = amount < 0 and 0 or math.floor(now / rates[place + 1]) - math.floor(stamp / rates[place + 1])
            if behind == 0 or behind == 1 then
                counts[place + behind] = math.max(0, math.min(counts[place + behind] - amount, rates[place]))
            end
        end
        strategies.sliding_counter.take(key, now, 0, rates, counts)
    end
}
