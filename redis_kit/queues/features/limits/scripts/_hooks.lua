-- What scripts do about lanes and limits, each part at a hook of theirs.
-- @on on_check
-- @keys lanes
-- @check_types lanes
-- @if rules
-- @keys turns, limits, parked
-- @check_types turns, limits, parked
-- @end rules
-- @on on_define
-- @include _lanes
-- @on on_end
-- @keys lanes
may_start = free_places(ids) or may_start
redis.call("HDEL", lanes, unpack(ids))
-- @on on_leave
-- @if rules
if from == "running" then
    may_start = to ~= "gone" and how.lane ~= "away" and free_places({id}) or may_start
elseif from == "ready" or from == "scheduled" then
    may_start = (to == "gone" or how.leaves_lane) and leave_lane(id) or may_start
end
-- @end rules
-- @on on_place
place = lane_place(id, priority, turn) or place
-- @on on_promote
-- @keys ready
redis.call("ZADD", ready, place, id)  -- before the next one of its lane
-- @on on_put
-- Put new jobs into a lane, ready; without a priority, as for jobs of later, only note in which lane they are. `text` has a line
-- for the lane, and two for each of its limits that the caller knows: its name, and what the code allows, - for nothing.
-- @keys limits, parked, sequence
local function put_in_lane(text, ids, priority)
    local lines, of_ids, places = {}, {}, {}
    for line in string.gmatch(text, "[^\n]+") do lines[#lines + 1] = line end
    local lane = lines[1]
    use_feature(1)
    for at = 2, #lines, 2 do
        local field, allowed = "code " .. lines[at], lines[at + 1]
        if (redis.call("HGET", limits, field) or "-") ~= allowed then
            use_feature(64)
            redis.call("ZADD", parked, 0, "rule\n" .. lines[at], 0, "todo\nfrom ")
            if allowed == "-" then redis.call("HDEL", limits, field) else redis.call("HSET", limits, field, allowed) end
        end
    end
    local waits = string.find(redis.call("HGET", limits, "lane " .. lane) or "", "^%d")
    local place = priority and next_places(lane, priority, #ids, redis.call("INCRBY", sequence, #ids))
    for at, id in ipairs(ids) do
        local rank = place and rank_of(place) or "-"
        of_ids[2 * at - 1], of_ids[2 * at] = id, rank .. " " .. lane
        if place then
            places[2 * at - 1] = waits and 0 or string.format("%.0f", place)
            places[2 * at] = waits and "job\n" .. lane .. "\n" .. rank .. "\n" .. id or id
            place = place + 16
        end
    end
    redis.call("HSET", lanes, unpack(of_ids))
    if place then redis.call("ZADD", waits and parked or ready, unpack(places)) end
end
put_in_lane(lane, ids, not later and priority)
-- @on on_away
-- Give a job that another system has, or got, the places in its limits, also in those that are set later.
-- @keys lanes, parked
local _, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
if lane then use_feature(64) end
for name in string.gmatch(lane or "", "%S+") do
    redis.call("ZADD", parked, 0, "run\n" .. name .. "\n" .. id)
end
-- @on on_state
-- A job that waits in its lane for a limit is parked. To callers it is ready.
-- @keys lanes, parked
local rank, lane = string.match(redis.call("HGET", lanes, id) or "", "^(%S+) (.*)$")
if lane and redis.call("ZSCORE", parked, "job\n" .. lane .. "\n" .. rank .. "\n" .. id) then
    return "ready"
end
-- @on on_lane
-- @keys lanes
own = string.match(redis.call("HGET", lanes, holder) or "", "^%S+ (.*)$")
-- @on on_reason
-- The limit for which a job waits, if it is used up: else the job waits for a worker.
-- @keys lanes
local clock = redis.call("TIME")
-- @include _blocking
local lane = string.match(redis.call("HGET", lanes, id) or "", "^%S+ (.*)$") or ""
if state == "ready" then reason = blocking(lane) or "" end
-- @on on_count
-- @keys parked
waiting = waiting + redis.call("ZLEXCOUNT", parked, "[job\n", "(job\11")
-- @on on_read
-- After those that are ready come those that wait for a limit. Where it is not used up any more they wait for a worker.
-- @keys parked
local clock = redis.call("TIME")
-- @include _blocking
if state == "ready" and #entries < 2 * limit then
    local from = math.max(0, offset - redis.call("ZCARD", key))
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\11", "LIMIT", from, limit - #entries / 2)) do
        local lane, id = string.match(member, "^job\n([^\n]*)\n.*\n(.*)$")
        entries[#entries + 1], entries[#entries + 2] = id or member, ""
        reasons_of[id or member] = lane and blocking(lane) or ""
        places_of[#entries / 2] = "parked " .. member
    end
end
-- @on on_offset
-- @keys parked
if score == "parked" then
    return redis.call("ZCARD", ready) + redis.call("ZLEXCOUNT", parked, "[job\n", "[" .. member)
end
-- @on on_purge
-- @keys parked
if state == "ready" and #ids < limit then
    for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[job\n", "(job\11", "LIMIT", 0, limit - #ids)) do
        ids[#ids + 1] = string.match(member, "[^\n]*$")
    end
end
-- @on on_age
-- The first jobs of 100 lanes that wait for a limit.
-- @keys parked, jobs
local first = "[job\n"
for _ = 1, 100 do
    local member = redis.call("ZRANGEBYLEX", parked, first, "(job\11", "LIMIT", 0, 1)[1]
    local lane, id = string.match(member or "", "^job\n([^\n]*)\n[^\n]*\n(.*)$")
    local stored = lane and redis.call("HGET", jobs, id)
    longest = stored and math.max(longest, now - select(4, read_record(stored))) or longest
    if not lane then break end
    first = "(job\n" .. lane .. "\11"
end
-- @on on_next
-- @include redis_kit.queues.engine:_record_head
-- @include _lanes
local todo = next_todo()
if todo and (not coming or todo < coming) then coming = todo end
-- @on on_check_claim
-- @if not later
-- @include redis_kit.queues.engine:_record_head
-- @end later
-- @keys turns
-- @check_types turns
-- @if rules
-- @keys running, jobs, minutes, sequence
-- @check_types running, jobs, minutes, sequence
-- @end rules
-- @on on_admit
-- Choose jobs by their lanes and limits, in place of the first ready ones; see _lanes.
-- @keys ready, lanes, turns
-- @if rules
-- @keys sequence, limits, parked
-- @end rules
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
-- @if rules
if limit > 0 and not is_paused then waiting = admit_lanes() end
-- @end rules
-- @on on_choose
local turns_after
taken, turns_after = choose_jobs(limit)
-- @on on_begin
-- @keys turns
if turns_after[1] then redis.call("ZADD", turns, unpack(turns_after)) end
-- @on on_look_ahead
-- @if rules
-- The next start that a rate allows counts as a scheduled job, and a limit that is to be looked at now as a ready one.
local todo = next_todo()
if todo and (not coming or todo < coming) then coming = todo end
waiting = redis.call("ZCARD", ready) + claimed + (todo and todo * 1000 <= us and 1 or 0)
-- @end rules
-- @on on_sweep
-- @keys lanes, parked
used = used + redis.call("EXISTS", lanes) + 64 * redis.call("EXISTS", parked)
-- @on on_sweep_jobs
-- Note for the next claim what lanes and limits should look like but do not. No script leaves them like that, but a damaged key
-- may. At most 100 of each kind are looked at, by chance.
-- @keys lanes, turns, limits, parked, sequence, jobs, scheduled
local function note(kind, name)
    redis.call("ZADD", parked, 0, "todo\n" .. kind .. " " .. name)
    noted = true
end
local function wait_again(lane)  -- as long as jobs of it are parked
    local rank, waits = first_parked(lane), waiting_of(lane)
    if not rank then
        redis.call("HDEL", limits, "lane " .. lane)
    elseif not waits or not redis.call("ZSCORE", parked, "turn\n" .. waits.limit .. "\n" .. waits.turn .. "\n" .. lane) then
        local name, turn = string.match(lane, "^%S+"), string.format("%016.0f", redis.call("INCRBY", sequence, 1))
        redis.call("ZADD", parked, 0, "turn\n" .. name .. "\n" .. turn .. "\n" .. lane)
        set_waiting(lane, name, turn, "0", rank - 2 ^ 51)
        note("limit", name)
    end
end
for _, id in ipairs(redis.call("HRANDFIELD", lanes, 100)) do
    if redis.call("HEXISTS", jobs, id) == 0 then redis.call("HDEL", lanes, id) end
end
for _, member in ipairs(redis.call("ZRANGEBYLEX", parked, "[run\n", "(run\11")) do
    local limit, id = string.match(member, "^run\n([^\n]*)\n(.*)$")
    if not held[id or ""] and not redis.call("ZSCORE", scheduled, id or "") then  -- those another system has are scheduled
        redis.call("ZREM", parked, member)
        note("limit", limit or "")
    end
end
for _, member in ipairs(redis.call("ZRANDMEMBER", parked, 100)) do
    local kind, name, id = string.match(member, "^(%l+)\n([^\n]*).-([^\n]*)$")
    if kind == "turn" then
        note("limit", name)
    elseif kind == "job" and redis.call("HEXISTS", jobs, id) == 0 then
        redis.call("ZREM", parked, member)
    elseif kind == "job" then
        wait_again(name)
    end
end
for _, field in ipairs(redis.call("HRANDFIELD", limits, 100)) do
    local lane = string.match(field, "^lane (.*)$")
    if lane then wait_again(lane) end
    local start = string.sub(field, 1, 5) == "next " and (tonumber(redis.call("HGET", limits, field)) or 0)
    if start and start < now * 1000 then redis.call("HDEL", limits, field) end
end
if redis.call("EXISTS", lanes) == 0 then redis.call("DEL", turns) end
