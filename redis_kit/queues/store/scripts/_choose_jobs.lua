-- Choose up to `room` ready jobs in their order. A lane whose head is chosen gets its next job ready, with the last turn of
-- its priority, and that one may be chosen, too. Heads that may not start now, and jobs that are not the head of their
-- lane, do not stay ready. Returns id and place of each chosen job, which is not ready any more; when the next job is due; and
-- how many were ready, or are to be looked at.
-- needs  lanes, parked, ready, scheduled, sequence, limits_of, blocking, take_place, write_limits, range_of, rank_of, place_at,
--        job_member, turn_member, state_of, set_state, write_states, wait_turn, refresh_lane, admit, do_todo
-- gives  choose_jobs
local WINDOW = 200  -- ready jobs that are read at least, after some were not the heads of their lanes
-- @include _ready_heads
-- @include _next_jobs
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
    do_todo()
    local list, stray, cut = read_ready(room)
    for _ = 1, 10 do
        if not stray then break end
        list, stray, cut = read_ready(math.max(room, WINDOW))
    end
    local at, bound = 1, cut and list[#list].place or math.huge
    while not stray and #chosen < 2 * room and list[at] and list[at].place <= bound do
        local item = list[at]
        local limit = item.lane and blocking(item.lane)
        at = at + 1
        if limit then
            hold_back(item, limit)
        else
            chosen[#chosen + 1], chosen[#chosen + 2] = item.id, item.text
            if item.member then unpark(item) else leave[#leave + 1] = item.id end
            if item.lane then
                take_place(item.lane, item.id)
                if not item.member then end_turn(item) end
                local many = math.ceil((room - #chosen / 2) / math.max(1, #list - at + 1)) + 1
                local head = following(item.lane, many, room)
                local before = #list
                while head and before >= at and list[before].place > head.place do before = before - 1 end
                if head then table.insert(list, before + 1, head) end
                set_state(item.lane, head or false)
            end
        end
    end
    local heads = {}
    for at = at, #list do
        local item = list[at]
        if item.member then
            local limit = blocking(item.lane)
            if limit then
                hold_back(item, limit)
            else
                unpark(item)
                heads[#heads + 1], heads[#heads + 2] = item.text, item.id
            end
        end
    end
    if #heads > 0 then redis.call("ZADD", ready, unpack(heads)) end
    if #leave > 0 then redis.call("ZREM", ready, unpack(leave)) end
    if #ended > 0 then redis.call("ZREM", parked, unpack(ended)) end
    remove_unparked()
    write_limits()
    for name in pairs(ripe) do admit(name) end
    write_states()
    return chosen, count_waiting()
end
