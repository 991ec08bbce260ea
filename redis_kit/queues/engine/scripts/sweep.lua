#!lua flags=allow-oom
-- Make jobs ready that are in no state, or run for a worker that does not exist. No script leaves a job like that; a key
-- that was damaged and deleted does. Dead jobs of more than 30 days are deleted, at most ten.
-- One script: a job is in no state only if all states are read at one moment.
--
-- @keys features, workers, sequence, signal, paused, repeats
-- ARGV[1]   sample     how many jobs are looked at, by chance
-- ARGV[2]   most       running jobs up to which it is done
-- ARGV[3]   longest    the longest lease that any worker may have, ms
-- returns   ids of the jobs that are ready again

local dead_limit = math.huge
local sample, most, longest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _valid_place
-- @include _lanes with rules
-- @include _state_of
-- @include _move with any, bury, lanes
-- @include _endings
-- Note for the next claim what lanes and limits should look like but do not: no script leaves them like that, but a worker of an
-- earlier release does, which knows no lanes, or a key that was damaged. At most 100 of each kind are looked at, by chance.
-- Returns whether anything was noted.
local function sweep_lanes(held)
    local noted = false
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
    return noted
end
-- Which features the queue uses, by what there is of them.
local used = 8 * redis.call("EXISTS", scheduled) + 16 * redis.call("EXISTS", paused) + 32 * redis.call("EXISTS", repeats)
used = used + redis.call("EXISTS", lanes) + 64 * redis.call("EXISTS", parked)
-- @hook on_sweep(used)
used = string.format("%.0f", used)
if (redis.call("GET", features) or "0") ~= used then redis.call("SET", features, used) end
local chosen, count = redis.call("HRANDFIELD", jobs, sample), redis.call("ZCARD", running)
if #chosen + count == 0 then
    return {}
end
-- @check_types ready, scheduled, dead, workers, signal, sequence, lanes, turns, limits, parked, reasons
-- @hook on_check
drop_oldest()

-- Scripts find a worker's jobs by their names alone, which holds where all scores are 0; and no lease is longer.
for _, range in ipairs({{"-inf", "(0"}, {"(0", "+inf"}}) do
    for _, member in ipairs(redis.call("ZRANGEBYSCORE", running, range[1], range[2], "LIMIT", 0, 100)) do
        redis.call("ZADD", running, 0, member)
    end
end
local latest = string.format("%.0f", now + longest)
for _, worker in ipairs(redis.call("ZRANGEBYSCORE", workers, "(" .. latest, "+inf", "LIMIT", 0, 100)) do
    redis.call("ZADD", workers, latest, worker)
end
if count > most then
    return {}
end

local back, held, alive = {}, {}, {}
for _, member in ipairs(redis.call("ZRANGE", running, 0, -1)) do
    local worker, place, id = string.match(member, "^([^/]+)/[^/]+/([^/]+)/(.*)$")
    if worker and alive[worker] == nil then
        alive[worker] = redis.call("ZSCORE", workers, worker) and true or false
    end
    if worker and alive[worker] then
        held[id] = true
    elseif #back < 100 then
        local record, wakes, has_ended = id and redis.call("HGET", jobs, id), false, false
        if not record then
            redis.call("ZREM", running, member)
            has_ended = true
        else
            -- @hook on_return(id, member, record, wakes, has_ended, note_ending, move)
        end
        if not has_ended then
            move(id, "running", "ready", {member = member, place = valid_place(place)})
            back[#back + 1] = id
        end
    end
end
local scores = {}
for at, key in ipairs({ready, scheduled, dead}) do
    scores[at] = #chosen > 0 and redis.call("ZMSCORE", key, unpack(chosen))
end
for at, id in ipairs(chosen) do
    local record = redis.call("HGET", jobs, id)
    if record and not (held[id] or scores[1][at] or scores[2][at] or scores[3][at] or is_parked(id)) and #back < 100 then
        local priority = read_record(record)
        local place = ready_place(id, priority, redis.call("INCRBY", sequence, 1))
        move(id, nil, "ready", {place = place})
        back[#back + 1] = id
    end
end
if sweep_lanes(held) or #back > 0 then
    wake()
end
return back
