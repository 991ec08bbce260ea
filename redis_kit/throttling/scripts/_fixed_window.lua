strategies.fixed_window = {
    -- Stored are number and count of each rate's window; figures are the counts. A clock that went back finds the
    -- later window's count in the present one.
    look = function(key, now, cost, rates)
        local stored, counts, room, back = numbers(redis.call("GET", key) or ""), {}, true, false
        for place = 1, #rates, 2 do
            local window, count = math.floor(now / rates[place + 1]), 0
            if (stored[place] or 0) >= window then
                count = math.min(stored[place + 1] or 0, rates[place])
                back = back or stored[place] > window
            end
            counts[#counts + 1] = count
            room = room and count + math.min(cost, rates[place]) <= rates[place]
        end
        return room, counts, back
    end,
    take = function(key, now, cost, rates, counts)
        local state, lasting = {}, 0
        for place, count in ipairs(counts) do
            local period = rates[2 * place]
            counts[place] = math.min(count + cost, rates[2 * place - 1])
            state[place] = string.format("%.0f %.0f", math.floor(now / period), counts[place])
            lasting = math.max(lasting, period - now % period)
        end
        redis.call("SET", key, table.concat(state, " "), "PX", math.ceil(lasting / 1000))
    end,
    give = function(key, now, stamp, amount, rates)
        local _, counts = strategies.fixed_window.look(key, now, 0, rates)
        for place, count in ipairs(counts) do
            if amount < 0 or math.floor(stamp / rates[2 * place]) == math.floor(now / rates[2 * place]) then
                counts[place] = math.max(0, math.min(count - amount, rates[2 * place - 1]))
            end
        end
        strategies.fixed_window.take(key, now, 0, rates, counts)
    end
}
