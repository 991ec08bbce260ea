-- Choose jobs by their lanes and limits, in place of the first ready ones.
-- @keys ready, scheduled, sequence, lanes, limits, parked
-- needs  clock, use_feature
-- gives  choose_jobs
-- @if rules
-- The limits of jobs. The limits of a lane are the words of its name. A limit is "<jobs that may run> <us between two
-- starts> <as it was written>", with a - for none: that which was set for its name, that which was set for all its values,
-- or that of the code.
local SLACK = 100000  -- us by which a start may be early, so that the starts after a late one are in time
local us, known, of_lane, holds = clock[1] * 1000000 + clock[2], {}, {}, {}

local function limit_of(name)
    if known[name] == nil then
        local all = string.gsub(string.gsub(name, "^(group=).*", "%1*"), "(&[^=]+=)[^&]*", "%1*")
        local own, set, code = unpack(redis.call("HMGET", limits, "set " .. name, "set " .. all, "code " .. all))
        local most, interval = string.match(own or set or code or "", "^([%d-]+) ([%d-]+)")
        local limit = {name = name, most = tonumber(most), interval = tonumber(interval), used = 0, next = 0, coming = 0}
        if limit.most then
            limit.used = redis.call("ZLEXCOUNT", parked, "[run\n" .. name .. "\n", "(run\n" .. name .. "\11")
        end
        if limit.interval then
            -- A start that is too far away is one of another rate, or of a clock that went back.
            local stored = string.match(redis.call("HGET", limits, "next " .. name) or "", "^%d+$")
            limit.next = tonumber(stored) or 0
            if limit.next > us + SLACK + limit.interval then limit.next = us + SLACK end
        end
        known[name] = (limit.most or limit.interval) and limit
    end
    return known[name]
end

local function limits_of(lane)
    if not of_lane[lane] then
        of_lane[lane] = {}
        for name in string.gmatch(lane, "%S+") do
            table.insert(of_lane[lane], limit_of(name) or nil)
        end
    end
    return of_lane[lane]
end

-- In which us a limit allows a start after `more` others, nil if it does so now.
local function starts_at(limit, more)
    local at = (more > 0 and math.max(limit.next, us) + more * limit.interval or limit.next) - SLACK
    return at > us and at or nil
end

-- The first limit that lets no job of a lane start, and in which us it will; no time if a job has to end first. With `planned`, jobs that got ready in this call count as started.
local function blocking(lane, planned)
    for _, limit in ipairs(limits_of(lane)) do
        local more = planned and limit.coming or 0
        if limit.most and limit.used + more >= limit.most then
            return limit
        end
        local at = limit.interval and starts_at(limit, more)
        if at then return limit, at end
    end
end

local function take_place(lane, id)
    for _, limit in ipairs(limits_of(lane)) do
        holds[#holds + 1], holds[#holds + 2] = 0, "run\n" .. limit.name .. "\n" .. id
        limit.used, limit.taken = limit.used + 1, true
        limit.next = limit.interval and math.max(limit.next, us) + limit.interval
    end
end

local function write_limits()
    if #holds > 0 then redis.call("ZADD", parked, unpack(holds)) end
    local any
    for _, limit in pairs(known) do
        if limit and limit.taken and limit.interval then
            any = redis.call("HSET", limits, "next " .. limit.name, string.format("%.0f", limit.next)) == 1 or any
        end
    end
    for _, field in ipairs(any and redis.call("HRANDFIELD", limits, 5) or {}) do  -- more than are added
        local past = string.sub(field, 1, 5) == "next " and tonumber(redis.call("HGET", limits, field))
        if past and past < us then redis.call("HDEL", limits, field) end
    end
end
-- @end rules
-- @if not rules
-- No limit was ever set, in the code or by somebody: all lanes may start.
local known = {}
local function limit_of() return false end
local function limits_of() return {} end
local function starts_at() return nil end
local function blocking() return nil end
local function take_place() end
local function write_limits() end
-- @end rules

-- Jobs with the same group and limits wait in a lane, in their order. Only the head of a lane is ready, so lanes take turns.
-- A lane is
--   ready <rank> <id>          its head is ready
--   timed <rank> <id> <limit>  its head is scheduled for when a rate allows it: at most one lane of a limit
--   waits <turn> <limit>       for its turn at a limit; none of its jobs is ready
-- and nothing while no job of it waits. `parked` has members of score 0:
--   job/<lane>/<rank>/<id>     a job that waits; with \11 in place of the first /, the head of a lane that is timed
--   run/<limit>/<id>           a running job that a limit counts
--   turn/<limit>/<turn>/<lane> a lane that waits for a limit; the turn of a timed lane is NOW
--   todo/lane <lane>, todo/limit <limit>, todo/from <limit>  what the next claim is to look at
-- with line feeds in place of the /. A rank is the place of a job without a lane, as text of 16 digits. Heads of lanes have
-- places of their own, before those of jobs of the same priority without a lane. A turn is a number of the counter.
local MOST = 100  -- lanes, and entries of what is to be looked at, in one call
local BLOCK, HALF, MIDDLE, NOW = 2 ^ 44, 2 ^ 43, 2 ^ 51, "0000000000000000"
local LEVELS = 128  -- above and below 0: more than there are priorities

-- Places of one level belong to jobs of one priority.
local function level_of(place)
    local level = math.floor(((tonumber(place) or 0) + HALF) / BLOCK)
    return level == level and math.max(-LEVELS, math.min(LEVELS, level)) or 0
end

local function range_of(kind, name, count, after)
    local first = after and "(" .. after or "[" .. kind .. "\n" .. name .. "\n"
    return redis.call("ZRANGEBYLEX", parked, first, "(" .. kind .. "\n" .. name .. "\11", "LIMIT", 0, count)
end

-- The turn in a place or rank.
local function turn_of(place)
    local turn = (tonumber(place) or 0) % HALF
    return turn == turn and turn or 0
end

local function rank_of(place)
    return string.format("%016.0f", MIDDLE + level_of(place) * BLOCK + turn_of(place))
end

-- The place of the head of a lane, with the priority of a rank.
local function place_at(rank, turn)
    return string.format("%.0f", level_of((tonumber(rank) or MIDDLE) - MIDDLE) * BLOCK - HALF + turn)
end

local function job_member(lane, rank, id)
    return "job\n" .. lane .. "\n" .. rank .. "\n" .. id
end

local function timed_member(lane, rank, id)
    return "job\11" .. lane .. "\n" .. rank .. "\n" .. id
end

local function turn_member(limit, turn, lane)
    return "turn\n" .. limit .. "\n" .. (turn or NOW) .. "\n" .. lane
end

local states, changed = {}, {}  -- of lanes, each read once and written once

local function read_states(lanes_read)
    local fields = {}
    for at, lane in ipairs(lanes_read) do fields[at] = "lane " .. lane end
    for at, stored in ipairs(#fields > 0 and redis.call("HMGET", limits, unpack(fields)) or {}) do
        local kind, rank, id, limit = string.match(stored or "", "^(%l+) (%S+) (%S+) ?(%S*)$")
        states[lanes_read[at]] = kind == "waits" and {kind = kind, turn = rank, limit = id} or kind and
            {kind = kind, rank = rank, id = id, limit = limit} or false
    end
end

local function state_of(lane)
    if states[lane] == nil then read_states({lane}) end
    return states[lane]
end

local function set_state(lane, state)
    states[lane], changed[lane] = state, true
end

local function write_states()
    local texts, gone = {}, {}
    for lane in pairs(changed) do
        local state, field = states[lane], "lane " .. lane
        if not state then
            gone[#gone + 1] = field
        else
            local rest = state.kind == "waits" and state.turn .. " " .. state.limit or state.rank .. " " .. state.id .. " " .. state.limit
            texts[#texts + 1], texts[#texts + 2] = field, state.kind .. " " .. rest
        end
    end
    if #texts > 0 then redis.call("HSET", limits, unpack(texts)) end
    if #gone > 0 then redis.call("HDEL", limits, unpack(gone)) end
end

local function wait_turn(lane, limit)
    local turn = string.format("%016.0f", redis.call("INCRBY", sequence, 1))
    redis.call("ZADD", parked, 0, turn_member(limit.name, turn, lane))
    set_state(lane, {kind = "waits", turn = turn, limit = limit.name})
end

-- The state of the lane of a limit that is timed, its name, and when its head is due, nil if that is ready by now. A lane that
-- is not timed any more is removed from there.
local function timed_lane(name)
    local first = range_of("turn", name, 1)[1] or ""
    local lane = string.match(first, "^turn\n[^\n]*\n[^\n]*\n(.*)$")
    if not lane or first ~= turn_member(name, nil, lane) then
        return nil
    end
    local state = state_of(lane)
    if state and state.kind == "timed" and state.limit == name then
        local time = redis.call("ZSCORE", scheduled, state.id)
        if time or redis.call("ZSCORE", ready, state.id) then return state, lane, time end
    end
    redis.call("ZREM", parked, first)
    return timed_lane(name)
end

local function add_ready(lane, rank, id, turn)
    redis.call("ZADD", ready, place_at(rank, turn or redis.call("INCRBY", sequence, 1)), id)
    for _, limit in ipairs(limits_of(lane)) do limit.coming = limit.coming + 1 end
end

-- Find out what a lane can do now, and have it do that. A lane that is new has the turn of its first job; one that waited for a
-- limit, `from`, the last one.
local function refresh_lane(lane, from)
    local state, member = state_of(lane), range_of("job", lane, 1)[1]
    local rank, id = string.match(member or "", "([^\n]*)\n([^\n]*)$")
    if state and state.kind == "waits" then
        if redis.call("ZSCORE", parked, turn_member(state.limit, state.turn, lane)) then return end
    elseif state then
        local key, place = ready, redis.call("ZSCORE", ready, state.id)
        if not place then key, place = scheduled, redis.call("ZSCORE", scheduled, state.id) end
        if place and member and rank < state.rank then  -- this one is to start first
            redis.call("ZREM", key, state.id)
            redis.call("ZREM", parked, member)
            redis.call("ZADD", parked, 0, job_member(lane, state.rank, state.id))
            redis.call("ZADD", key, key == ready and place_at(rank, turn_of(place)) or place, id)
            if redis.call("ZREM", parked, timed_member(lane, state.rank, state.id)) == 1 then
                redis.call("ZADD", parked, 0, timed_member(lane, rank, id))
            end
            set_state(lane, {kind = state.kind, rank = rank, id = id, limit = state.limit})
        end
        if place then return end
        if state.kind == "timed" then
            redis.call("ZREM", parked, turn_member(state.limit, nil, lane))
            redis.call("ZADD", parked, 0, "todo\nlimit " .. state.limit)
        end
    end
    if not member then
        return set_state(lane, false)
    end
    local limit, at = blocking(lane, true)
    if limit and (not at or timed_lane(limit.name)) then
        return wait_turn(lane, limit)
    end
    redis.call("ZREM", parked, member)
    if limit then
        redis.call("ZADD", parked, 0, turn_member(limit.name, nil, lane), 0, timed_member(lane, rank, id))
        use_feature(8)
        redis.call("ZADD", scheduled, string.format("%.0f", math.ceil(at / 1000)), id)
        return set_state(lane, {kind = "timed", rank = rank, id = id, limit = limit.name})
    end
    add_ready(lane, rank, id, not from and turn_of(rank))
    set_state(lane, {kind = "ready", rank = rank, id = id, limit = ""})
end

-- Make heads of lanes ready that wait for a limit, as far as it allows.
local function admit(name)
    local limit = limit_of(name)
    for _ = 1, MOST do
        local state, lane, time = timed_lane(name)
        local at = limit and limit.interval and starts_at(limit, limit.coming)
        if state and at then
            if time then redis.call("ZADD", scheduled, string.format("%.0f", math.ceil(at / 1000)), state.id) end
            return
        elseif state then
            if time then
                redis.call("ZREM", scheduled, state.id)
                redis.call("ZREM", parked, timed_member(lane, state.rank, state.id))
                add_ready(lane, state.rank, state.id)
            end
            return
        elseif limit and limit.most and limit.used + limit.coming >= limit.most then
            return
        end
        local first = range_of("turn", name, 1)[1]
        if not first then return end
        lane = string.match(first, "^turn\n[^\n]*\n[^\n]*\n(.*)$") or ""
        redis.call("ZREM", parked, first)
        set_state(lane, false)
        refresh_lane(lane, name)
    end
    redis.call("ZADD", parked, 0, "todo\nlimit " .. name)
end

local function do_todo()
    for _, entry in ipairs(redis.call("ZRANGEBYLEX", parked, "[todo\n", "(todo\11", "LIMIT", 0, MOST)) do
        redis.call("ZREM", parked, entry)
        local kind, name = string.match(entry, "^todo\n(%l+) (.*)$")
        if kind == "lane" then
            refresh_lane(name)
        elseif kind == "limit" then
            admit(name)
        elseif kind == "from" then
            for _ = 1, MOST do
                local following = redis.call("ZRANGEBYLEX", parked, "(turn\n" .. name .. "\11", "(turn\11", "LIMIT", 0, 1)[1]
                name = following and string.match(following, "^turn\n([^\n]*)")
                if not name then break end
                admit(name)
            end
            if name then redis.call("ZADD", parked, 0, "todo\nfrom " .. name) end
        end
    end
end

-- Choose up to `room` ready jobs, by priority, then in turn: one of each lane, and one of those without a lane. A lane whose head
-- is chosen gets its next job ready, with the last turn, and that one may be chosen, too. Heads that may not start now, and jobs
-- that are not the head of their lane, do not stay ready. Returns id and place of each chosen job, which is not ready any more;
-- when the next job is due; and how many were ready, or are to be looked at.
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
    local of_ids, unread = #ids > 0 and redis.call("HMGET", lanes, unpack(ids)) or {}, {}
    for at = 1, #ids do
        local lane = string.match(of_ids[at] or "", "^%S+ (.*)$")
        if lane and states[lane] == nil then unread[#unread + 1] = lane end
    end
    read_states(unread)
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
        more.at, more.size = 1, many
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
local unparked = {}
local function unpark(item)
    unparked[#unparked + 1] = item.member
end

local function choose_jobs(room)
    local chosen, leave, ended, ripe, placed = {}, {}, {}, {}, {}

    local function count_waiting()
        local todo = redis.call("ZLEXCOUNT", parked, "[todo\n", "(todo\11")
        local next_due = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
        return tonumber(next_due), redis.call("ZCARD", ready) + #chosen / 2 + todo
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
            placed[#placed + 1], placed[#placed + 2] = item.text, item.id
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
        if #placed > 0 then redis.call("ZADD", ready, unpack(placed)) end
        -- Before the next level is read: a job that came back may be parked there, in place of one of these.
        if #unparked > 0 then redis.call("ZREM", parked, unpack(unparked)) end
        placed, unparked, buffers = {}, {}, {}
        if turn ~= first_turn then redis.call("HSET", limits, field, string.format("%.0f", turn)) end
        return not cut
    end

    do_todo()
    local from, goes_on = "-inf", true
    while goes_on and #chosen < 2 * room do
        local first = redis.call("ZRANGEBYSCORE", ready, from, "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
        if not first then break end
        local level = level_of(first)
        local middle, next_from = string.format("%.0f", level * BLOCK), string.format("%.0f", level * BLOCK + HALF)
        local to = level < LEVELS and "(" .. next_from or "+inf"
        goes_on = choose_level(level, {from = from, middle = "(" .. middle, middle_on = middle, to = to}) and level < LEVELS
        from = next_from
    end
    if #leave > 0 then redis.call("ZREM", ready, unpack(leave)) end
    if #ended > 0 then redis.call("ZREM", parked, unpack(ended)) end
    write_limits()
    for name in pairs(ripe) do admit(name) end
    write_states()
    return chosen, count_waiting()
end
