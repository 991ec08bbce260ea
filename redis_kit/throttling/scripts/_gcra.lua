-- The generic cell rate algorithm, as leaky buckets.
-- needs  nothing
-- gives  look, take, give

-- Figures are the levels. For each rate the state holds the time at which its bucket is empty, in 8 bytes, which
-- takes the least memory. If that may not be a whole microsecond, the state holds the time of the call as a number
-- below 0 and then the levels, so that levels are always exact. After the clock went back, levels rise again, to the
-- capacity at most.
local function look(key, now, cost, rates)
    local state, levels, room, back = redis.call("GET", key) or "", {0}, true, false
    local moment = #state > 7 and struct.unpack("<d", state) or 0
    local place = moment < 0 and 9 or 1
    for index = 1, #rates, 3 do
        local drain, price, capacity, level = rates[index], rates[index + 1], rates[index + 2], 0
        if #state > place + 6 then
            level = struct.unpack("<d", state, place)
            level = moment < 0 and level - (now + 1 + moment) * drain or (level - now) * drain
            place = place + 8
        end
        if level > capacity then
            level, back = capacity, true
        elseif not (level > 0) then
            level = 0
        end
        levels[(index + 2) / 3] = level
        room = room and (level == 0 or level + cost * price <= capacity)
    end
    return room, levels, back
end

local function take(key, now, cost, rates, levels)
    local ttl, whole, state = 0, true, nil
    for index = 1, #levels do
        local drain, price, capacity = rates[3 * index - 2], rates[3 * index - 1], rates[3 * index]
        local level = levels[index] + cost * price
        if level > capacity then
            level = capacity
        end
        if level > ttl * drain then
            ttl = level / drain
        end
        levels[index], whole = level, whole and drain == 1 and now + level < 2 ^ 53
    end
    if not whole then
        state = struct.pack("<d", -1 - now)
    end
    for index = 1, #levels do
        local number = struct.pack("<d", whole and now + levels[index] or levels[index])
        state = state and state .. number or number
    end
    redis.call("SET", key, state, "PX", math.ceil(ttl / 1000) + 1)
end

-- @reservations
-- Refund only what can't have drained since ``stamp``, when the level was that of the figures: if the bucket became
-- empty, or may have, the call has drained.
local function give(key, now, stamp, amount, rates, before)
    local _, levels = look(key, now, 0, rates)
    for index, level in ipairs(levels) do
        local drain, price, capacity = rates[3 * index - 2], rates[3 * index - 1], rates[3 * index]
        local change = amount * price
        if amount > 0 then
            change = math.max(0, math.min(change, (before[index] or 0) - (now - stamp) * drain))
        end
        levels[index] = math.max(0, math.min(level - change, capacity))
    end
    take(key, now, 0, rates, levels)
end
