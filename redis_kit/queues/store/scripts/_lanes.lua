-- Jobs with the same group and limits wait in a lane, in their order. Only the head of a lane is ready, so lanes take turns.
-- A lane is
--   ready <rank> <id>          its head is ready
--   timed <rank> <id> <limit>  its head is scheduled for when a rate allows it: at most one lane of a limit
--   waits <turn> <limit>       for its turn at a limit; none of its jobs is ready
-- and nothing while no job of it waits. `parked` has members of score 0:
--   job/<lane>/<rank>/<id>     a job that waits
--   run/<limit>/<id>           a running job that a limit counts
--   turn/<limit>/<turn>/<lane> a lane that waits for a limit; the turn of a timed lane is NOW
--   todo/lane <lane>, todo/limit <limit>, todo/from <limit>  what the next claim is to look at
-- with line feeds in place of the /. A rank is the place of a job without a lane, as text of 16 digits. Heads of lanes have
-- places of their own, before those of jobs of the same priority without a lane. A turn is a number of the counter.
-- needs  limits, parked, ready, scheduled, sequence, limit_of, limits_of, starts_at, blocking
-- gives  level_of, range_of, rank_of, place_at, turn_of, job_member, turn_member, state_of, set_state, write_states, wait_turn,
--        timed_lane, add_ready, refresh_lane, admit, do_todo
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

local function turn_member(limit, turn, lane)
    return "turn\n" .. limit .. "\n" .. (turn or NOW) .. "\n" .. lane
end

local states, changed = {}, {}  -- of lanes, each read once and written once

local function state_of(lane)
    if states[lane] == nil then
        local kind, rank, id, limit = string.match(redis.call("HGET", limits, "lane " .. lane) or "", "^(%l+) (%S+) (%S+) ?(%S*)$")
        states[lane] = kind == "waits" and {kind = kind, turn = rank, limit = id} or kind and
            {kind = kind, rank = rank, id = id, limit = limit} or false
    end
    return states[lane]
end

local function set_state(lane, state)
    states[lane], changed[lane] = state, true
end

local function write_states()
    for lane in pairs(changed) do
        local state = states[lane]
        if not state then
            redis.call("HDEL", limits, "lane " .. lane)
        elseif state.kind == "waits" then
            redis.call("HSET", limits, "lane " .. lane, "waits " .. state.turn .. " " .. state.limit)
        else
            redis.call("HSET", limits, "lane " .. lane, state.kind .. " " .. state.rank .. " " .. state.id .. " " .. state.limit)
        end
    end
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
        redis.call("ZADD", parked, 0, turn_member(limit.name, nil, lane))
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
