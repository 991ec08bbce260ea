-- The calls of this window, and a share of those of the previous one.
-- needs  nothing
-- gives  look, take, give

-- For each rate, the state holds the start of its window, the count of that window and of the previous one, 8 bytes
-- each; figures are both counts. After the clock went back, the counts of the later window apply to the current one.
local function look(key, now, cost, rates)
    local state, counts, room, back = redis.call("GET", key) or "", {0, 0}, true, false
    for index = 1, #rates, 2 do
        local limit, period, current, previous = rates[index], rates[index + 1], 0, 0
        local rest, place = period - now % period, 12 * index - 11
        if #state > place + 22 then
            local window, start, last, before = now + rest - period, struct.unpack("<ddd", state, place)
            if start >= window then
                current, previous = math.max(0, math.min(last, limit)), math.max(0, math.min(before, limit))
                back = back or start > window
            elseif start == window - period then
                previous = math.max(0, math.min(last, limit))
            end
        end
        counts[index], counts[index + 1] = current, previous
        room = room and (limit - current - math.min(cost, limit)) * period >= previous * rest
    end
    return room, counts, back
end

local function take(key, now, cost, rates, counts)
    local state, ttl = "", 0
    for index = 1, #rates, 2 do
        local period = rates[index + 1]
        local start = now - now % period
        counts[index] = math.min(counts[index] + cost, rates[index])
        state = state .. struct.pack("<ddd", start, counts[index], counts[index + 1])
        ttl = math.max(ttl, start + 2 * period - now)
    end
    redis.call("SET", key, state, "PX", math.ceil(ttl / 1000))
end

-- @reservations
local function give(key, now, stamp, amount, rates)
    local _, counts = look(key, now, 0, rates)
    for index = 1, #rates, 2 do
        local behind = amount < 0 and 0 or math.floor(now / rates[index + 1]) - math.floor(stamp / rates[index + 1])
        if behind == 0 or behind == 1 then
            counts[index + behind] = math.max(0, math.min(counts[index + behind] - amount, rates[index]))
        end
    end
    take(key, now, 0, rates, counts)
end
