-- Count calls by minute and by hour, see minutes.lua and hours.lua.
-- needs  CALLS, minute
-- gives  block_of, added, store, turn, turn_refused

local HOURS, DAYS, KEPT, LARGEST = 73, 91, 90 * 86400, 2 ^ 32 - 1

-- Return the block with this number, and the other block whose field it takes; nil if that is a later one, unless the
-- clock went back.
local function block_of(counts, field, number, present)
    local block = redis.call("HGET", counts, field) or ""
    local stored = #block > 3 and struct.unpack("<I4", block)
    if stored == number then
        return block
    elseif not stored or stored < number or stored > present then
        return struct.pack("<I4", number), stored and block
    end
end

-- Return a block with further calls in one of its slots.
local function added(block, slot, allowed, refused)
    local head, tail = block, ""
    for start = 5, #block - 8, 9 do
        if string.byte(block, start) == slot then
            local _, earlier_allowed, earlier_refused = struct.unpack("<BI4I4", block, start)
            head, tail = string.sub(block, 1, start - 1), string.sub(block, start + 9)
            allowed, refused = allowed + earlier_allowed, refused + earlier_refused
            break
        end
    end
    return head .. struct.pack("<BI4I4", slot, math.min(allowed, LARGEST), math.min(refused, LARGEST)) .. tail
end

-- Store the calls of a minute that is over. The hour whose block is replaced moves to its day.
local function store(counts, which, allowed, refused)
    local hour, today = math.floor(which / 60), math.floor(minute / 1440)
    local block, other = block_of(counts, hour % HOURS, hour, math.floor(minute / 60))
    if block then
        redis.call("HSET", counts, hour % HOURS, added(block, which % 60, allowed, refused))
        hour, allowed, refused = struct.unpack("<I4", other or block), 0, 0
        for start = 5, #(other or "") - 8, 9 do
            local _, more_allowed, more_refused = struct.unpack("<BI4I4", other, start)
            allowed, refused = allowed + more_allowed, refused + more_refused
        end
    end
    local day = math.floor(hour / 24)
    if allowed + refused > 0 and math.abs(day - today) < DAYS then
        block = block_of(counts, "d" .. day % DAYS, day, today)
        if block then
            redis.call("HSET", counts, "d" .. day % DAYS, added(block, hour % 24, allowed, refused))
        end
    end
    redis.call("EXPIRE", counts, KEPT)
end

-- Begin a minute with its first allowed call, which ``total`` has added to an earlier minute.
local function turn(latest, counts, total)
    local wrong, earlier = redis.pcall("HLEN", counts), total % CALLS - 1
    if type(wrong) == "table" then
        if total == 1 then
            redis.call("DEL", latest)
        else
            redis.call("SET", latest, string.format("%.0f", total - 1), "KEEPTTL")
        end
        error(wrong)
    end
    if earlier > 0 then
        store(counts, math.floor(total / CALLS), earlier, 0)
    end
    redis.call("SET", latest, string.format("%.0f", minute * CALLS + 1), "EX", KEPT)
end

-- Begin a minute with its first refused calls, which ``total`` has added to an earlier minute.
local function turn_refused(counts, total, refused)
    local earlier = total % CALLS - refused
    if earlier > 0 then
        store(counts, math.floor(total / CALLS), 0, earlier)
    end
    redis.call("HSET", counts, "refused", string.format("%.0f", minute * CALLS + refused))
    redis.call("EXPIRE", counts, KEPT)
end
