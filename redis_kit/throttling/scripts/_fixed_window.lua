-- Fixed windows: a count in each window of the clock.
-- needs  nothing
-- gives  look, take, give

-- For the strategy overrun this is 1: then the first call beyond a limit is counted too, though it is refused.
local BEYOND = 0

-- The state holds the start and the count of each rate's window, 8 bytes each; figures are the counts. After the
-- clock went back, the count of the later window applies to the current one.
local function look(key, now, cost, rates)
    local state, counts, room, back = redis.call("GET", key) or "", {0}, true, BEYOND > 0
    for index = 1, #rates, 2 do
        local limit, period, count = rates[index], rates[index + 1], 0
        if #state > 8 * index + 6 then
            local window, start, stored = now - now % period, struct.unpack("<dd", state, 8 * index - 7)
            if start >= window then
                count, back = math.max(0, math.min(stored, limit + BEYOND)), back or start > window
            end
        end
        counts[(index + 1) / 2] = count
        room = room and count + math.min(cost, limit) <= limit
    end
    return room, counts, back
end

local function take(key, now, cost, rates, counts)
    local state, ttl = "", 0
    for index = 1, #counts do
        local limit, period = rates[2 * index - 1], rates[2 * index]
        local rest = period - now % period
        if cost == 0 and counts[index] >= limit then -- refused by this rate
            counts[index] = limit + BEYOND
        else
            counts[index] = math.min(counts[index] + cost, limit)
        end
        state = state .. struct.pack("<dd", now + rest - period, counts[index])
        ttl = math.max(ttl, rest)
    end
    redis.call("SET", key, state, "PX", math.ceil(ttl / 1000))
end

-- @reservations
local function give(key, now, stamp, amount, rates)
    local _, counts = look(key, now, 0, rates)
    for index, count in ipairs(counts) do
        if amount < 0 or math.floor(stamp / rates[2 * index]) == math.floor(now / rates[2 * index]) then
            counts[index] = math.max(0, math.min(count - amount, rates[2 * index - 1]))
        end
    end
    take(key, now, 0, rates, counts)
end
