-- The calls of this window, and a share of those of the previous one.
-- needs  strategies, numbers
-- gives  strategies.sliding_counter

strategies.sliding_counter = {
    -- For each rate, the state holds the number of its window, the count of that window and of the previous one; figures
    -- are both counts. After the clock went back, the counts of the later window apply to the current one.
    look = function(key, now, cost, rates)
        local stored, counts, room, back = numbers(redis.call("GET", key) or ""), {}, true, false
        for index = 1, #rates, 2 do
            local limit, period, offset = rates[index], rates[index + 1], (index - 1) / 2 * 3
            local window, last = math.floor(now / period), stored[offset + 1] or 0
            local current, previous = 0, 0
            if last >= window then
                current, previous = stored[offset + 2] or 0, stored[offset + 3] or 0
                back = back or last > window
            elseif last == window - 1 then
                previous = stored[offset + 2] or 0
            end
            current, previous = math.min(current, limit), math.min(previous, limit)
            counts[index], counts[index + 1] = current, previous
            local left = limit - current - math.min(cost, limit)
            room = room and left * period >= previous * (period - now % period)
        end
        return room, counts, back
    end,
    take = function(key, now, cost, rates, counts)
        local state, ttl = {}, 0
        for index = 1, #rates, 2 do
            local period = rates[index + 1]
            counts[index] = math.min(counts[index] + cost, rates[index])
            state[#state + 1] = string.format("%.0f %.0f %.0f", math.floor(now / period), counts[index], counts[index + 1])
            ttl = math.max(ttl, 2 * period - now % period)
        end
        redis.call("SET", key, table.concat(state, " "), "PX", math.ceil(ttl / 1000))
    end,
    give = function(key, now, stamp, amount, rates)
        local _, counts = strategies.sliding_counter.look(key, now, 0, rates)
        for index = 1, #rates, 2 do
            local behind = amount < 0 and 0 or math.floor(now / rates[index + 1]) - math.floor(stamp / rates[index + 1])
            if behind == 0 or behind == 1 then
                counts[index + behind] = math.max(0, math.min(counts[index + behind] - amount, rates[index]))
            end
        end
        strategies.sliding_counter.take(key, now, 0, rates, counts)
    end
}
