-- Choose jobs by their lanes and limits, in place of the first ready ones; see _lanes.
-- @keys ready, lanes, turns
-- @if rules
-- @keys sequence, limits, parked
-- @end rules
-- needs  clock, us, known, HALF, ROUND, rank_of, waiting_of, set_waiting, first_entry, first_parked, note_limit
-- gives  admit_lanes, choose_jobs
local BLOCK, LEVELS = 2 ^ 44, 128  -- places of one priority, the lower half of lanes; more than there are priorities
-- @if rules
-- @include _blocking
local MOST = 100  -- lanes, and entries of what is to be looked at, in one call

-- A job of a lane starts: it has its places in the limits.
local function start(lane)
    for _, limit in ipairs(limits_of(lane)) do
        limit.used, limit.starts = limit.used + 1, true
        limit.next = limit.interval and math.max(limit.next, us) + limit.interval
    end
end

-- A lane waits for its turn at a limit, behind others.
local function wait(lane, limit, at, rank, place)
    local turn = string.format("%016.0f", redis.call("INCRBY", sequence, 1))
    redis.call("ZADD", parked, 0, "turn\n" .. limit .. "\n" .. turn .. "\n" .. lane)
    if at then redis.call("ZADD", parked, 0, string.format("todo\ntime %016.0f ", at) .. limit) end
    return set_waiting(lane, limit, turn, rank, place)
end

local function write_limits()
    local any
    for _, limit in pairs(known) do
        if limit and limit.starts and limit.interval then
            any = redis.call("HSET", limits, "next " .. limit.name, string.format("%.0f", limit.next)) == 1 or any
        end
    end
    for _, field in ipairs(any and redis.call("HRANDFIELD", limits, 5) or {}) do  -- more than are added
        local past = string.sub(field, 1, 5) == "next " and tonumber(redis.call("HGET", limits, field))
        if past and past < us then redis.call("HDEL", limits, field) end
    end
end

-- Make the first jobs of lanes ready that wait for a limit, as far as it allows: in turns, also with lanes that did not wait.
local fronts = {}  -- by priority, the place of the first ready job that has a lane
local function admit(name)
    for _ = 1, MOST do
        local entry = first_entry("turn\n" .. name)
        if not entry then return end
        local turn, lane = string.match(entry, "^turn\n[^\n]*\n([^\n]*)\n(.*)$")
        local state, rank, id, member = lane and waiting_of(lane), nil, nil, nil
        if lane then rank, id, member = first_parked(lane) end
        local is_next = rank and state and state.limit == name and state.turn == turn
        local limit, at = nil, nil
        if is_next then limit, at = blocking(lane) end
        if limit == name then
            if at then redis.call("ZADD", parked, 0, string.format("todo\ntime %016.0f ", at) .. name) end
            return
        end
        redis.call("ZREM", parked, entry)
        if limit then
            wait(lane, limit, at, state.rank, state.place)
        elseif is_next then
            local own = tonumber(rank) - 2 ^ 51
            local level = math.floor((own + HALF) / BLOCK)
            local from, to = string.format("%.0f", level * BLOCK - HALF), string.format("(%.0f", level * BLOCK)
            fronts[level] = fronts[level] or tonumber(redis.call("ZRANGEBYSCORE", ready, from, to, "WITHSCORES", "LIMIT", 0, 1)[2]) or own
            local place = math.max(own, fronts[level], state.place + ROUND)
            redis.call("ZREM", parked, member)
            redis.call("ZADD", ready, string.format("%.0f", place), id)
            start(lane)
            local following = first_parked(lane)
            if following then wait(lane, name, nil, rank, place) else set_waiting(lane, "-", "-", rank, place) end
        end
    end
    redis.call("ZADD", parked, 0, "todo\nlimit " .. name)
end

-- Look at what was noted. Returns how many jobs are ready.
local function admit_lanes()
    for _, entry in ipairs(redis.call("ZRANGEBYLEX", parked, "[todo\n", "(todo\11", "LIMIT", 0, MOST)) do
        local kind, name = string.match(entry, "^todo\n(%l+) (.*)$")
        local at, of_time = string.match(name or "", "^(%d+) (.*)$")
        if kind == "time" and tonumber(at) > us then break end
        redis.call("ZREM", parked, entry)
        for _ = 1, kind == "from" and MOST or 0 do
            local following = redis.call("ZRANGEBYLEX", parked, "(turn\n" .. name .. "\11", "(turn\11", "LIMIT", 0, 1)[1]
            name = following and string.match(following, "^turn\n([^\n]*)")
            if not name then break end
            admit(name)
        end
        if kind == "from" and name then
            redis.call("ZADD", parked, 0, "todo\nfrom " .. name)
        elseif kind ~= "from" then
            admit(kind == "time" and of_time or name or "")
        end
    end
    for _, limit in pairs(known) do  -- these have not started yet
        if limit then limit.used, limit.next, limit.starts = limit.used_before, limit.next_before, nil end
    end
    return redis.call("ZCARD", ready)
end

-- Whether a ready job may start. Else it waits in its lane.
local states, held, freed = {}, {}, {}
local function may_start(id, place, stored)
    local rank, lane = string.match(stored or "", "^(%S+) (.*)$")
    if not lane then return true end
    if #rank ~= 16 then
        rank = rank_of(place)
        redis.call("HSET", lanes, id, rank .. " " .. lane)
    end
    if states[lane] == nil then states[lane] = waiting_of(lane) or false end
    local state, limit, at = states[lane], nil, nil
    local is_next = not state or rank <= state.rank
    if is_next then limit, at = blocking(lane) end
    if is_next and not limit then
        start(lane)
        for name in string.gmatch(lane, "%S+") do held[#held + 1], held[#held + 2] = 0, "run\n" .. name .. "\n" .. id end
        if state and state.turn == "-" and rank == state.rank then
            redis.call("HDEL", limits, "lane " .. lane)
            states[lane] = false
        end
        return true
    end
    redis.call("ZADD", parked, 0, "job\n" .. lane .. "\n" .. rank .. "\n" .. id)
    if limit and state then
        redis.call("ZREM", parked, "turn\n" .. state.limit .. "\n" .. state.turn .. "\n" .. lane)
        for name in string.gmatch(lane, "%S+") do freed[name] = true end
    end
    if limit then
        states[lane] = wait(lane, limit, at, "0", state and state.place or place - ROUND)
    elseif state.turn == "-" then  -- the latest one that may start is ready still
        local name = string.match(lane, "^%S+")
        states[lane] = wait(lane, name, nil, state.rank, state.place)
        redis.call("ZADD", parked, 0, "todo\nlimit " .. name)
    end
    return false
end
-- @end rules

-- The first jobs of one priority, with their places: of lanes, then of those without one, which have turns as if they were a lane.
local function read_level(room)
    local entries = redis.call("ZRANGE", ready, 0, room - 1, "WITHSCORES")
    local level, heads, others = math.floor(((tonumber(entries[2]) or 0) + HALF) / BLOCK), {}, {}
    level = math.max(-LEVELS, math.min(LEVELS, level))
    local middle = level * BLOCK
    for at = 1, #entries, 2 do
        local place = tonumber(entries[at + 1])
        local list = place < middle and heads or (place < middle + HALF or level == LEVELS) and others or {}
        list[#list + 1], list[#list + 2] = entries[at], entries[at + 1]
    end
    if #heads == 2 * room then
        local from, to = string.format("%.0f", middle), string.format("(%.0f", middle + HALF)
        others = redis.call("ZRANGEBYSCORE", ready, from, to, "WITHSCORES", "LIMIT", 0, room)
    end
    return heads, others, level
end

-- Choose up to `room` ready jobs. Returns id and place of each, which is not ready any more; and the turns of jobs without a lane
-- after these, as they are to be stored.
local function choose_jobs(room)
    local chosen, size, pass, turns_after = {}, 0, 0, {}
    while size < 2 * room and pass < 10 do
        pass = pass + 1
        local heads, others, level = read_level(pass == 1 and room or math.max(room - size / 2, 200))
        if #heads + #others == 0 then break end
        local may, gone, head, other, turn = nil, {}, 1, 1, #others > 0 and -math.huge or math.huge
        if #heads > 0 and #others > 0 then
            turn = math.max(redis.call("ZSCORE", turns, string.format("%.0f ", -level)) or heads[2], heads[2] - ROUND)
        end
        -- @if rules
        local ids = {}
        for at = 1, #heads, 2 do ids[#ids + 1] = heads[at] end
        for at = 1, #others, 2 do ids[#ids + 1] = others[at] end
        may = {}
        for at, stored in ipairs(redis.call("HMGET", lanes, unpack(ids))) do may[ids[at]] = stored end
        -- @end rules
        while size < 2 * room and (heads[head] or others[other]) do
            local is_head = heads[head] and (not others[other] or tonumber(heads[head + 1]) <= turn)
            local id, place
            if is_head then
                id, place, head = heads[head], heads[head + 1], head + 2
            else
                id, place, other = others[other], others[other + 1], other + 2
                turn = turn + ROUND
            end
            gone[#gone + 1] = id
            -- @if rules
            if not may_start(id, tonumber(place), may[id]) then id = nil end
            -- @end rules
            if id then
                chosen[size + 1], chosen[size + 2], size = id, place, size + 2
            end
        end
        if math.abs(turn) < math.huge then
            turns_after[#turns_after + 1], turns_after[#turns_after + 2] = string.format("%.0f", turn), string.format("%.0f ", -level)
        end
        redis.call("ZREM", ready, unpack(gone))
    end
    -- @if rules
    if #held > 0 then redis.call("ZADD", parked, unpack(held)) end
    write_limits()
    for name in pairs(freed) do note_limit(name) end
    -- @end rules
    return chosen, turns_after
end
