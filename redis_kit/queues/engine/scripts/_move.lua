-- The only code that changes the states of jobs, with what features keep of them. A script includes the parts that it needs: put,
-- later, begin and finish for many jobs at once, and any for one, with delay if it may be scheduled, and bury if it may be dead.
-- @keys jobs, running
-- needs  count_minute, place_of, read_record, use_feature, now, dead_limit, first_field
-- gives  ready_place, put, promote, begin, finish, move, note_ending, drop_oldest
-- @hook on_define
-- @if any|used
-- The place of a job that gets ready.
local function ready_place(id, priority, turn)
    local place = place_of(priority, turn)
    -- @hook on_place(id, priority, turn, place)
    return place
end
-- @end any|used
-- @if put
-- @keys ready, sequence
-- Store new jobs: records and places are in the form in which commands take them.
local function put(to, records, places)
    local stored, placed = redis.pcall("HSET", jobs, unpack(records)), redis.pcall("ZADD", to, unpack(places))
    if type(stored) == "table" or type(placed) == "table" then
        for at = 1, #records, 2 do
            redis.pcall("HDEL", jobs, records[at])
            redis.pcall("ZREM", to, records[at])
        end
        if to == ready then redis.call("INCRBY", sequence, -#records / 2) end
        error(type(stored) == "table" and stored or placed)
    end
end
-- @end put
-- @if later
-- @keys ready, scheduled, sequence
-- Make scheduled jobs ready that are due, at most 100. Returns when the next one is due, and how many are ready.
local function promote()
    local due = redis.call("ZRANGEBYSCORE", scheduled, "-inf", now, "LIMIT", 0, 100)
    local records, last, places = redis.call("HMGET", jobs, unpack(due)), redis.call("INCRBY", sequence, #due), {}
    for at, id in ipairs(due) do
        local priority, turn = read_record(records[at] or ""), last - #due + at
        local place = place_of(priority, turn)
        -- @hook on_place(id, priority, turn, place)
        -- @hook on_promote(id, place)
        places[2 * at - 1], places[2 * at] = place, id
    end
    redis.call("ZADD", ready, unpack(places))
    redis.call("ZREM", scheduled, unpack(due))
    return tonumber(redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]), redis.call("ZCARD", ready)
end
-- @end later
-- @if begin
-- @keys ready
-- Jobs that were taken out of `ready`, given as id and place, run now. If reading them failed, or one of the keys is of a wrong
-- type, they are ready again, and that is the error.
local function begin(taken, members, records, failure)
    local added = failure or #members == 0 or redis.pcall("ZADD", running, unpack(members))
    if type(added) == "table" then
        for at = 1, #taken, 2 do redis.call("ZADD", ready, taken[at + 1], taken[at]) end
        error(added)
    end
    if #records > 0 then redis.call("HSET", jobs, unpack(records)) end
end
-- @end begin
-- @if finish
-- @keys answers, minutes
-- Jobs are done, if their claims hold. Returns the numbers of those whose claims were lost; how many are done; how many were in
-- this minute; the record of each by its number, if they are wanted; and whether others may start now. A repeated call for the
-- last 250 jobs, at least, gets the same answer. If a key is of a wrong type, nothing is changed.
local function finish(members, ids, wants_records)
    local count, done, lost, may_start = #ids, 0, {}, false
    local holds = count > 1 and redis.call("ZMSCORE", running, unpack(members)) or {redis.call("ZREM", running, members[1]) == 1}
    local records = wants_records and redis.pcall("HMGET", jobs, unpack(ids))
    for at = 1, count do done = holds[at] and done + 1 or done end
    if done < count then
        local answered, held, held_ids = {}, {}, {}
        for _, entry in ipairs(redis.call("LRANGE", answers, 0, -1)) do answered[entry] = true end
        for at = 1, count do
            if holds[at] then
                held[#held + 1], held_ids[#held + 1] = members[at], ids[at]
            elseif not answered[members[at]] then
                lost[#lost + 1] = at
            end
            if records and not holds[at] then records[at] = nil end
        end
        members, ids = held, held_ids
        if done == 0 then return lost, 0, nil, records, false end
    end
    if count > 1 then redis.call("ZREM", running, unpack(members)) end
    local length = redis.pcall("RPUSH", answers, unpack(members))
    local sum = type(length) == "number" and count_minute(0, done) or length
    local deleted = type(sum) == "number" and redis.pcall("HDEL", jobs, unpack(ids)) or sum
    if type(deleted) == "table" then
        for _, member in ipairs(members) do redis.call("ZADD", running, 0, member) end
        if type(length) == "number" then redis.call("LTRIM", answers, 0, -1 - done) end
        if type(sum) == "number" and count_minute(0, -done) == 0 then redis.call("HDEL", minutes, first_field) end
        error(deleted)
    end
    if length > 300 then redis.call("LTRIM", answers, -250, -1) end
    if length == done then redis.call("PEXPIRE", answers, 3600 * 1000) end
    -- @hook on_end(ids, may_start)
    return lost, done, sum, records, may_start
end
-- @end finish
-- @if any|used
-- @keys ready, scheduled, dead, reasons
-- A job is
--   ready      in `ready` by its place, or parked in its lane until a limit allows more
--   scheduled  in `scheduled` by when it is due
--   running    in `running`, as worker/claim/place/id
--   dead       in `dead`, with the reason in `reasons`
--   gone       in none of them, and not stored: it is done, cancelled or deleted
-- Change the state of one, which is not `from` a state if it is new. `how` has its member of `running`, its record if that
-- changes, its place if it gets ready, when it is due if it is scheduled, the reason if it is dead, and "away" as its lane if it ran
-- and another system has it. Returns whether a worker is to wake up, as a job may start now.
local function move(id, from, to, how)
    local may_start = to == "ready"
    if from == "running" then
        redis.call("ZREM", running, how.member)
    elseif from == "dead" then
        redis.call("ZREM", dead, id)
        redis.call("HDEL", reasons, id)
        -- @hook on_bury(id)
    elseif from then
        redis.call("ZREM", ready, id)
        redis.call("ZREM", scheduled, id)
    end
    -- @hook on_leave(id, from, to, how, may_start)
    if how.record then redis.call("HSET", jobs, id, how.record) end
    if to == "ready" then
        redis.call("ZADD", ready, how.place, id)
    -- @if delay
    elseif to == "scheduled" then
        local first = redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
        redis.call("ZADD", scheduled, string.format("%.0f", how.due), id)
        if not first then use_feature(8) end
        return may_start or not first or how.due < tonumber(first)
    -- @end delay
    elseif to == "running" then
        redis.call("ZADD", running, 0, how.claim)
    elseif to == "parked" then
        return may_start  -- the caller puts it into its lane
    -- @if bury
    elseif to == "dead" then
        redis.call("ZADD", dead, string.format("%.0f", now), id)
        redis.call("HSET", reasons, id, how.reason)
        -- @hook on_bury(id)
    -- @end bury
    else
        redis.call("HDEL", jobs, id)
        local ids = {id}
        -- @hook on_end(ids, may_start)
    end
    return may_start
end
-- @end any|used
-- @if bury
-- Jobs that ended without their worker.
local function note_ending(id, kind, reason, record)
    -- @hook on_lost(id, kind, reason, record)
end

-- The oldest dead jobs make room for others, and those of more than 30 days, at most ten.
local MONTH = 30 * 24 * 3600 * 1000
local function drop_oldest()
    local count, oldest = redis.call("ZCARD", dead), redis.call("ZRANGE", dead, 0, 9, "WITHSCORES")
    for at = 1, #oldest, 2 do
        if count <= dead_limit and tonumber(oldest[at + 1]) > now - MONTH then
            break
        end
        move(oldest[at], "dead", "gone", {})
        count = count - 1
    end
end
-- @end bury
