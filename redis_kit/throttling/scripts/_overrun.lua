-- Fixed windows that record whether a call was refused.
-- needs  nothing
-- gives  look, take

-- As fixed_window, but the first call beyond a limit is counted too: a count above the limit tells that there was
-- one. Only for calls of one throttle at a cost of 1, without reservations.
local function look(key, now, cost, rates)
    local state, counts, room = redis.call("GET", key) or "", {}, true
    for index = 1, #rates, 2 do
        local limit, period, count = rates[index], rates[index + 1], 0
        if #state > 8 * index + 6 then
            local start, stored = struct.unpack("<dd", state, 8 * index - 7)
            count = start >= now - now % period and math.max(0, math.min(stored, limit + 1)) or 0
        end
        counts[(index + 1) / 2] = count
        room = room and count + cost <= limit
    end
    return room, counts, true
end

local function take(key, now, cost, rates, counts)
    local state, ttl = "", 0
    for index, count in ipairs(counts) do
        local limit, period = rates[2 * index - 1], rates[2 * index]
        local rest = period - now % period
        counts[index] = cost == 0 and count >= limit and limit + 1 or count + cost
        state = state .. struct.pack("<dd", now + rest - period, counts[index])
        ttl = math.max(ttl, rest)
    end
    redis.call("SET", key, state, "PX", math.ceil(ttl / 1000))
end
