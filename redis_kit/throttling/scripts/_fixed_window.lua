-- Fixed windows: a count in each window of the clock.
-- needs  strategies, numbers
-- gives  strategies.fixed_window

strategies.fixed_window = {
    -- The state holds the number and the count of each rate's window; figures are the counts. After the clock went back,
    -- the count of the later window applies to the current one.
    look = function(key, now, cost, rates)
        local stored, counts, room, back = numbers(redis.call("GET", key) or ""), {}, true, false
        for index = 1, #rates, 2 do
            local window, count = math.floor(now / rates[index + 1]), 0
            if (stored[index] or 0) >= window then
                count = math.min(stored[index + 1] or 0, rates[index])
                back = back or stored[index] > window
            end
            counts[#counts + 1] = count
            room = room and count + math.min(cost, rates[index]) <= rates[index]
        end
        return room, counts, back
    end,
    take = function(key, now, cost, rates, counts)
        local state, ttl = {}, 0
        for index, count in ipairs(counts) do
            local period = rates[2 * index]
            counts[index] = math.min(count + cost, rates[2 * index - 1])
            state[index] = string.format("%.0f %.0f", math.floor(now / period), counts[index])
            ttl = math.max(ttl, period - now % period)
        end
        redis.call("SET", key, table.concat(state, " "), "PX", math.ceil(ttl / 1000))
    end,
    give = function(key, now, stamp, amount, rates)
        local _, counts = strategies.fixed_window.look(key, now, 0, rates)
        for index, count in ipairs(counts) do
            if amount < 0 or math.floor(stamp / rates[2 * index]) == math.floor(now / rates[2 * index]) then
                counts[index] = math.max(0, math.min(count - amount, rates[2 * index - 1]))
            end
        end
        strategies.fixed_window.take(key, now, 0, rates, counts)
    end
}
