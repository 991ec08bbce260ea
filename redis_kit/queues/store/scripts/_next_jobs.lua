-- The jobs that wait in lanes, read ahead: which one follows, and that those which follow no longer wait.
-- needs  parked, sequence, range_of, place_at
-- gives  following, unpark, remove_unparked
local buffers, last_turn, free_turn = {}, 0, 0

-- Return the next job of a lane, as it would be ready after all others of its priority.
local function following(lane, many, room)
    local buffer = buffers[lane] or {at = 0, size = 0}
    buffers[lane], buffer.at = buffer, buffer.at + 1
    if buffer.at > #buffer and #buffer == buffer.size then
        local more = range_of("job", lane, many, buffer[#buffer])
        more.at, more.size, more.first, more.last = 1, many, buffer.first, buffer.last
        buffers[lane], buffer = more, more
    end
    local member = buffer[buffer.at]
    if not member then return nil end
    local rank, id = string.match(member, "([^\n]*)\n([^\n]*)$")
    if not id then -- of another program
        redis.call("ZREM", parked, member)
        return following(lane, many, room)
    end
    if last_turn == free_turn then
        last_turn = redis.call("INCRBY", sequence, room)
        free_turn = last_turn - room
    end
    free_turn = free_turn + 1
    local text = place_at(rank, free_turn)
    return {id = id, text = text, place = tonumber(text), lane = lane, rank = rank, kind = "ready", limit = "", member = member}
end

-- The next job of a lane does not wait there any more.
local function unpark(item)
    local buffer = buffers[item.lane]
    buffer.first, buffer.last = buffer.first or item.member, item.member
end

local function remove_unparked()
    for _, buffer in pairs(buffers) do
        if buffer.first then redis.call("ZREMRANGEBYLEX", parked, "[" .. buffer.first, "[" .. buffer.last) end
    end
end
