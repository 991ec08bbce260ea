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
-- @include _put_in_lane
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
-- @include _choose_jobs
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
-- @include _sweep_lanes
noted = sweep_lanes(held) or noted
