#!lua flags=allow-oom
-- Make jobs ready that are in no state, or run for a worker that does not exist. No script leaves a job like that; a key
-- that was damaged and deleted does. Dead jobs of more than 30 days are deleted, at most ten.
-- One script: a job is in no state only if all states are read at one moment.
--
-- KEYS[1]   jobs       hash: id -> record
-- KEYS[2]   ready      zset: id -> place
-- KEYS[3]   scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]   dead       zset: id -> when it died, ms
-- KEYS[5]   running    zset of scores 0: worker/claim/place/id
-- KEYS[6]   workers    zset: worker -> when its lease ends, ms
-- KEYS[7]   sequence   counter of jobs that got ready
-- KEYS[8]   signal     list: one element while a worker is to wake up
-- KEYS[9]   paused     string  the queue is paused while it exists: since when, ms
-- KEYS[10]  lanes      hash: id -> its rank in its lane, and that
-- KEYS[11]  limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[12]  parked     zset of scores 0: what waits for a limit
-- KEYS[13]  reasons    hash: id -> why it died
-- KEYS[14]  unique     hash: unique key -> id
-- KEYS[15]  owners     hash: id -> until when it has a unique key, and that key
-- ARGV[1]   sample     how many jobs are looked at, by chance
-- ARGV[2]   most       running jobs up to which it is done
-- ARGV[3]   longest    the longest lease that any worker may have, ms
-- returns   ids of the jobs that are ready again

local jobs, ready, scheduled, dead, running, workers, sequence, signal, paused = unpack(KEYS)
local lanes, limits, parked, reasons, unique, owners = unpack(KEYS, 10)
local dead_limit = math.huge
local sample, most, longest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include _record_head
-- @include _record
-- @include _wake
-- @include _valid_place
-- @include _leave_lane
-- @include _free_unique_key
-- @include _bury_job
-- @include _sweep_lanes
local chosen, count = redis.call("HRANDFIELD", jobs, sample), redis.call("ZCARD", running)
if #chosen + count == 0 then
    return {}
end
local any_unique = has_unique_keys()
-- @check_types ready, scheduled, dead, workers, signal, sequence, lanes, limits, parked, reasons
drop_oldest(any_unique)

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
local function put_back(id, place)
    redis.call("ZADD", ready, place, id)
    back[#back + 1] = id
end
for _, member in ipairs(redis.call("ZRANGE", running, 0, -1)) do
    local worker, place, id = string.match(member, "^([^/]+)/[^/]+/([^/]+)/(.*)$")
    if worker and alive[worker] == nil then
        alive[worker] = redis.call("ZSCORE", workers, worker) and true or false
    end
    if worker and alive[worker] then
        held[id] = true
    elseif #back < 100 then
        redis.call("ZREM", running, member)
        if id and redis.call("HEXISTS", jobs, id) == 1 then put_back(id, valid_place(place)) end
    end
end
local scores = {}
for at, key in ipairs({ready, scheduled, dead}) do
    scores[at] = #chosen > 0 and redis.call("ZMSCORE", key, unpack(chosen))
end
for at, id in ipairs(chosen) do
    local record = redis.call("HGET", jobs, id)
    if record and not (held[id] or scores[1][at] or scores[2][at] or scores[3][at] or waits_in_lane(id)) and #back < 100 then
        put_back(id, place_of(read_record(record), redis.call("INCRBY", sequence, 1)))
    end
end
if sweep_lanes(held) or #back > 0 then
    wake()
end
return back
