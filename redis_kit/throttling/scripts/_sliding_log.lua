-- The times of calls: exact in every period.
-- needs  nothing
-- gives  stamp, look, take, give

local WIDTH, SMALL = 8, 2048 -- bytes

-- Return a time of the log; the newest has the number 1. ``text`` is the end of the log.
local function stamp(key, text, number)
    local start = #text - number * WIDTH
    if start < 0 then
        text, start = redis.call("GETRANGE", key, -number * WIDTH, -number * WIDTH + WIDTH - 1), 0
    end
    return (struct.unpack("<d", text, start + 1))
end

-- The state holds the times of the last calls, 8 bytes each, the newest last. ``rates`` begins with the largest limit
-- and the longest period. Figures are count, wait and reset of each rate. After the clock went back, all times are
-- moved back too.
local function look(key, now, cost, rates)
    local text, newest, shift, room = redis.call("GETRANGE", key, "-2048", "-1"), 0, 0, true
    local size = #text < SMALL and #text or redis.call("STRLEN", key)
    local length, figures = (size - size % WIDTH) / WIDTH, {0, 0, 0, log = size == #text and text}
    if length > 0 then
        newest = stamp(key, text, 1)
    end
    if newest > now then
        newest, shift = now, newest - now
    end
    for index = 3, #rates, 2 do
        local limit, period, place = rates[index], rates[index + 1], 3 * (index - 1) / 2 - 2
        local since = now - period
        local low, high, more, wait = 0, length < limit and length or limit, cost < limit and cost or limit, 0
        if high > 0 and stamp(key, text, high) - shift > since then
            low = high
        end
        while low < high do
            local middle = math.ceil((low + high) / 2)
            if stamp(key, text, middle) - shift > since then
                low = middle
            else
                high = middle - 1
            end
        end
        if low + more > limit then
            wait = math.min(stamp(key, text, limit - more + 1) - shift - since, period)
        end
        room = room and wait <= 0
        local reset = length > 0 and newest > since and newest - since or 0
        figures[place], figures[place + 1], figures[place + 2] = low, wait, reset
    end
    return room, figures, shift > 0
end

local function take(key, now, cost, rates, figures, back)
    cost = cost < rates[1] and cost or rates[1]
    local log, added, most = figures.log, struct.pack("<d", now), (rates[1] - cost) * WIDTH
    local ttl = math.ceil(rates[2] / 1000)
    if cost ~= 1 then
        added = string.rep(added, cost)
    end
    if back then
        local text, stamps = redis.call("GETRANGE", key, -rates[1] * WIDTH, -1), {}
        local shift = struct.unpack("<d", text, #text - WIDTH + 1) - now
        for start = #text % WIDTH + 1, #text, WIDTH do
            stamps[#stamps + 1] = struct.pack("<d", struct.unpack("<d", text, start) - shift)
        end
        log = table.concat(stamps)
    end
    if log then
        if #log > most then
            log = string.sub(log, #log - most + 1)
        end
        redis.call("SET", key, log .. added, "PX", ttl)
    else
        if redis.call("APPEND", key, added) / WIDTH > rates[1] + math.max(16, rates[1] / 4) then
            redis.call("SET", key, redis.call("GETRANGE", key, -rates[1] * WIDTH, -1))
        end
        redis.call("PEXPIRE", key, ttl)
    end
    for index = 1, cost > 0 and #figures / 3 or 0 do
        figures[3 * index - 2] = math.min(figures[3 * index - 2] + cost, rates[2 * index + 1])
        figures[3 * index - 1], figures[3 * index] = 0, rates[2 * index + 2]
    end
end

-- @reservations
local function give(key, now, stamp, amount, rates)
    local _, figures = look(key, now, 0, rates)
    local text, stamps, room = redis.call("GETRANGE", key, -rates[1] * WIDTH, -1), {}, 0
    for start = #text % WIDTH + 1, #text, WIDTH do
        stamps[#stamps + 1] = struct.unpack("<d", text, start)
    end
    for index = 1, #figures / 3 do
        room = math.max(room, rates[2 * index + 1] - figures[3 * index - 2])
    end
    for index = #stamps, 1, -1 do
        if amount > 0 and stamps[index] == stamp then
            table.remove(stamps, index)
            amount = amount - 1
        end
    end
    for _ = 1, math.min(-amount, room) do
        stamps[#stamps + 1] = math.max(now, stamps[#stamps] or 0)
    end
    redis.call("DEL", key)
    if #stamps > 0 then
        for index, time in ipairs(stamps) do
            stamps[index] = struct.pack("<d", time)
        end
        redis.call("SET", key, table.concat(stamps), "PX", math.ceil(rates[2] / 1000))
    end
end
