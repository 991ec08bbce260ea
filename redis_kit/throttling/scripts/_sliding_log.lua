-- The times of calls: exact in every period.
-- needs  strategies
-- gives  packed, unpacked, strategies.sliding_log

local WIDTH, SMALL = 8, 256

local function packed(stamps)
    local texts = {}
    for index, stamp in ipairs(stamps) do
        texts[index] = struct.pack("<d", stamp)
    end
    return table.concat(texts)
end

-- Return the times in the log, only the newest ones up to a limit.
local function unpacked(key, most)
    local text, stamps = redis.call("GETRANGE", key, -most * WIDTH, -1), {}
    for index = #text % WIDTH + 1, #text, WIDTH do
        stamps[#stamps + 1] = struct.unpack("<d", text, index)
    end
    return stamps
end

strategies.sliding_log = {
    -- The state holds the times of the last calls, 8 bytes each, the newest last. ``rates`` begins with the largest limit
    -- and the longest period. Figures are count, wait and reset of each rate. After the clock went back, all times are
    -- moved back too.
    look = function(key, now, cost, rates)
        local text = rates[1] <= SMALL and (redis.call("GET", key) or "")
        local size, shift = text and #text or redis.call("STRLEN", key), 0
        local length = math.floor(size / WIDTH)
        local function stamp(newest)
            if newest > length then
                return 0
            end
            local start = size - newest * WIDTH
            local bytes = text or redis.call("GETRANGE", key, start, start + WIDTH - 1)
            return struct.unpack("<d", bytes, text and start + 1 or 1) - shift
        end
        local newest = stamp(1)
        shift = math.max(0, newest - now)
        newest = newest - shift
        local figures, room = {}, true
        for index = 3, #rates, 2 do
            local limit, since = rates[index], now - rates[index + 1]
            local low, high = 0, math.min(length, limit)
            while low < high do
                local middle = math.ceil((low + high) / 2)
                if stamp(middle) > since then
                    low = middle
                else
                    high = middle - 1
                end
            end
            local more = math.min(cost, limit)
            local wait = low + more > limit and math.min(stamp(limit - more + 1) - since, rates[index + 1]) or 0
            room = room and wait <= 0
            figures[#figures + 1], figures[#figures + 2] = low, wait
            figures[#figures + 1] = length > 0 and math.max(0, newest - since) or 0
        end
        return room, figures, shift > 0
    end,
    take = function(key, now, cost, rates, figures, back)
        if back then
            local stamps = unpacked(key, rates[1])
            local shift = stamps[#stamps] - now
            for index, stamp in ipairs(stamps) do
                stamps[index] = stamp - shift
            end
            redis.call("SET", key, packed(stamps))
        end
        cost = math.min(cost, rates[1])
        local length = redis.call("APPEND", key, string.rep(struct.pack("<d", now), cost)) / WIDTH
        if length > rates[1] + math.max(16, rates[1] / 4) then
            redis.call("SET", key, redis.call("GETRANGE", key, -rates[1] * WIDTH, -1))
        end
        redis.call("PEXPIRE", key, math.ceil(rates[2] / 1000))
        for index = 1, cost > 0 and #figures / 3 or 0 do
            figures[3 * index - 2] = math.min(figures[3 * index - 2] + cost, rates[2 * index + 1])
            figures[3 * index - 1], figures[3 * index] = 0, rates[2 * index + 2]
        end
    end,
    give = function(key, now, stamp, amount, rates)
        local _, figures = strategies.sliding_log.look(key, now, 0, rates)
        local stamps, room = unpacked(key, rates[1]), 0
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
            redis.call("SET", key, packed(stamps), "PX", math.ceil(rates[2] / 1000))
        end
    end
}
