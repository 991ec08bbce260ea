-- Choose up to `room` ready jobs, by priority, then in turn: one of each lane, and one of those without a lane. A lane whose head
-- is chosen gets its next job ready, with the last turn, and that one may be chosen, too. Heads that may not start now, and jobs
-- that are not the head of their lane, do not stay ready. Returns id and place of each chosen job, which is not ready any more;
-- when the next job is due; and how many were ready, or are to be looked at.
-- needs  lanes, limits, parked, ready, scheduled, sequence, limits_of, blocking, take_place, write_limits, level_of, range_of,
--        rank_of, place_at, turn_of, job_member, turn_member, state_of, set_state, write_states, wait_turn, refresh_lane, admit, do_todo
-- gives  leave_places, read_range, read_level, next_turn, following, unpark, remove_unparked, choose_jobs
local WINDOW = 200  -- ready jobs that are read at least, after some were not the heads of their lanes

-- Free the places of a job that another system had, and did not begin in time.
local function leave_places(lane, id)
    for name in string.gmatch(lane, "%S+") do
        if redis.call("ZREM", parked, "run\n" .. name .. "\n" .. id) == 1 then
            redis.call("ZADD", parked, 0, "todo\nlimit " .. name)
        end
    end
end

-- Add the ready jobs of a range to the heads of lanes, and those without a lane to the others. One that is in a lane, and not its
-- head, gets its place there instead; its lane is added to the strays. Returns whether the range may have more.
local function read_range(from, to, count, heads, others, strays)
    local found, ids = redis.call("ZRANGEBYSCORE", ready, from, to, "WITHSCORES", "LIMIT", 0, count), {}
    for at = 1, #found, 2 do ids[#ids + 1] = found[at] end
    local of_ids = #ids > 0 and redis.call("HMGET", lanes, unpack(ids))
    for at, id in ipairs(ids) do
        local rank, lane = string.match(of_ids[at] or "", "^(%S+) (.*)$")
        local state, place = lane and state_of(lane), found[2 * at]
        if lane and #rank ~= 16 then
            rank = rank_of(place)
            redis.call("HSET", lanes, id, rank .. " " .. lane)
            leave_places(lane, id)
        end
        local item = {id = id, text = place, turn = turn_of(place), lane = lane, rank = state and state.rank}
        if not lane then
            others[#others + 1] = item
        elseif state and state.id == id then
            local before = #heads
            while before > 0 and heads[before].turn > item.turn do before = before - 1 end
            table.insert(heads, before + 1, item)
        else
            redis.call("ZREM", ready, id)
            redis.call("ZADD", parked, 0, job_member(lane, rank, id))
            strays[lane] = true
        end
    end
    return #ids == count
end

-- The heads of lanes in their turns, the jobs without a lane, and whether there may be more heads. Nil while each time jobs are
-- found which are not the heads of their lanes.
local function read_level(bounds, room)
    for attempt = 0, 10 do
        local heads, others, strays, count = {}, {}, {}, attempt == 0 and room or math.max(room, WINDOW)
        local cut = read_range(bounds.from, bounds.middle, count, heads, others, strays)
        read_range(bounds.middle_on, bounds.to, count, heads, others, strays)
        if not next(strays) then return heads, others, cut end
        for lane in pairs(strays) do refresh_lane(lane) end
    end
end

local buffers, last_turn, free_turn = {}, 0, 0  -- jobs that wait in lanes, read ahead

-- A turn behind all others. `room` turns may be needed.
local function next_turn(room)
    if last_turn == free_turn then
        last_turn = redis.call("INCRBY", sequence, room)
        free_turn = last_turn - room
    end
    free_turn = free_turn + 1
    return free_turn
end

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
    local turn = next_turn(room)
    local text = place_at(rank, turn)
    return {id = id, text = text, turn = turn, lane = lane, rank = rank, kind = "ready", limit = "", member = member}
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

local function choose_jobs(room)
    local chosen, leave, ended, ripe = {}, {}, {}, {}

    local function count_waiting()
        local todo = redis.call("ZLEXCOUNT", parked, "[todo\n", "(todo\11")
        return tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]), redis.call("ZCARD", ready) + #chosen / 2 + todo
    end

    -- A head had its turn: others that wait for the same limits may go on.
    local function end_turn(item)
        local state = state_of(item.lane)
        if state and state.kind == "timed" then
            ended[#ended + 1] = turn_member(state.limit, nil, item.lane)
            ripe[state.limit] = true
        end
        for _, limit in ipairs(limits_of(item.lane)) do
            limit.coming, ripe[limit.name] = math.max(0, limit.coming - 1), true
        end
    end

    local function hold_back(item, limit)
        if not item.member then
            end_turn(item)
            leave[#leave + 1] = item.id
            redis.call("ZADD", parked, 0, job_member(item.lane, item.rank, item.id))
        end
        wait_turn(item.lane, limit)
        ripe[limit.name] = true
    end

    if room == 0 then
        return chosen, count_waiting()
    end
    -- The next job of a lane is ready, also in another level: that is read after this one.
    local function make_ready(item)
        local limit = blocking(item.lane)
        if limit then
            hold_back(item, limit)
        else
            unpark(item)
            redis.call("ZADD", ready, item.text, item.id)
        end
    end

    local function choose_head(item, level, heads, left)
        chosen[#chosen + 1], chosen[#chosen + 2] = item.id, item.text
        if item.member then unpark(item) else leave[#leave + 1] = item.id end
        take_place(item.lane, item.id)
        if not item.member then end_turn(item) end
        local many = math.ceil((room - #chosen / 2) / math.max(1, left)) + 1
        local next_head = following(item.lane, many, room)
        set_state(item.lane, next_head or false)
        if next_head and level_of(next_head.text) == level then
            heads[#heads + 1] = next_head
        elseif next_head then
            make_ready(next_head)
        end
    end

    -- Jobs without a lane take turns as if they were a lane. Returns false if not all jobs of the level were looked at.
    local function choose_level(level, bounds)
        local heads, others, cut = read_level(bounds, room - #chosen / 2)
        if not heads then return false end
        local field, at, other = "others " .. string.format("%.0f", level), 1, 1
        local stored = #heads > 0 and #others > 0 and tonumber(redis.call("HGET", limits, field)) or 0
        local first_turn = #others > 0 and math.max(stored, others[1].turn) or 0
        local turn = first_turn
        while #chosen < 2 * room and (heads[at] or others[other]) do
            local head, plain = heads[at], others[other]
            if head and (not plain or head.turn < turn) then
                at = at + 1
                local limit = blocking(head.lane)
                if limit then hold_back(head, limit) else choose_head(head, level, heads, #heads - at + 2) end
            else
                other = other + 1
                chosen[#chosen + 1], chosen[#chosen + 2], leave[#leave + 1] = plain.id, plain.text, plain.id
                if head then turn = next_turn(room) end
            end
        end
        for at = at, #heads do
            if heads[at].member then make_ready(heads[at]) end
        end
        if turn ~= first_turn then redis.call("HSET", limits, field, string.format("%.0f", turn)) end
        return not cut
    end

    do_todo()
    local from, goes_on = "-inf", true
    while goes_on and #chosen < 2 * room do
        local first = redis.call("ZRANGEBYSCORE", ready, from, "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
        if not first then break end
        local level = level_of(first)
        local middle, next_from = string.format("%.0f", level * 2 ^ 44), string.format("%.0f", level * 2 ^ 44 + 2 ^ 43)
        local to = level < 128 and "(" .. next_from or "+inf"
        goes_on = choose_level(level, {from = from, middle = "(" .. middle, middle_on = middle, to = to}) and level < 128
        from = next_from
    end
    if #leave > 0 then redis.call("ZREM", ready, unpack(leave)) end
    if #ended > 0 then redis.call("ZREM", parked, unpack(ended)) end
    remove_unparked()
    write_limits()
    for name in pairs(ripe) do admit(name) end
    write_states()
    return chosen, count_waiting()
end
