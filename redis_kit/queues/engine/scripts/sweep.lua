#!lua flags=allow-oom
-- Make jobs ready that are in no state, or run for a worker that does not exist. No script leaves a job like that; a key
-- that was damaged and deleted does. Dead jobs of more than 30 days are deleted, at most ten.
-- One script: a job is in no state only if all states are read at one moment.
--
-- @keys features, workers, sequence, signal, repeats
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
-- @include _state_of
-- @include _move with any, bury
-- @include _returned_record
-- Which features the queue uses, by what there is of them.
local used = 8 * redis.call("EXISTS", scheduled) + 32 * redis.call("EXISTS", repeats)
-- @hook on_sweep(used)
used = string.format("%.0f", used)
if (redis.call("GET", features) or "0") ~= used then redis.call("SET", features, used) end
local chosen, count = redis.call("HRANDFIELD", jobs, sample), redis.call("ZCARD", running)
if #chosen + count == 0 then
    return {}
end
-- @check_types ready, scheduled, dead, workers, signal, sequence, reasons
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
        if returned_record(id, member) then
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
    local is_found = held[id] or scores[1][at] or scores[2][at] or scores[3][at]
    if record and not is_found and state_of(id) == "running" and #back < 100 then  -- nowhere else, nor there
        local priority = read_record(record)
        local place = ready_place(id, priority, redis.call("INCRBY", sequence, 1))
        move(id, nil, "ready", {place = place})
        back[#back + 1] = id
    end
end
local noted = #back > 0
-- @hook on_sweep_jobs(held, noted)
if noted then wake() end
return back
