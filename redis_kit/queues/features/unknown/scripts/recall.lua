#!lua flags=allow-oom
-- Make the jobs ready that workers returned since they could not run them, as there is a worker that can. A caller that
-- can't run them either only looks which of them still exist.
-- One script: jobs must be in one state at any time, and the number of waiting jobs must fit.
-- It wakes no worker: a wake-up may go to one that can't run them, each time. The caller wakes its own.
--
-- @keys sequence, unknown, deferred
-- ARGV[1]  digest     of the shape
-- ARGV[2]  runs       1 when the caller runs these calls
-- ARGV[3]  limit      how many jobs, at most, and each second: workers that can't run them are there, too
-- returns  how many are ready now, how many wait, for how many ms the first of them does, and how many ms ago a worker
--          said that it runs these calls; nothing when none was returned

local digest, runs, limit = ARGV[1], ARGV[2] == "1", tonumber(ARGV[3])
local PAUSE, FORGOTTEN = 1000, 60000  -- ms
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_record
-- @include redis_kit.queues.engine:_move with any
-- @include _unknown_calls
-- @check_types ready, scheduled, dead, jobs
-- @hook on_check
local shape, _, _, known = read_unknown(digest)
if not shape then
    return {}
end
local recalls = runs and now - known >= PAUSE

-- Those that are gone by now leave their names behind.
local function sweep()
    local gone = {}
    for _, entry in ipairs(redis.call("ZRANDMEMBER", deferred, 100)) do
        local id = string.match(entry, "^(.*)/%d+$") or entry
        if redis.call("HEXISTS", jobs, id) == 0 or redis.call("ZSCORE", dead, id) then gone[#gone + 1] = entry end
    end
    if #gone > 0 then redis.call("ZREM", deferred, unpack(gone)) end
end

local function recall()
    local entries, moved = redis.call("ZRANGE", deferred, 0, limit - 1), 0
    local last = redis.call("INCRBY", sequence, #entries)
    for at, entry in ipairs(entries) do
        local id, given = string.match(entry, "^(.*)/(%d+)$")
        local record = id and redis.call("ZSCORE", scheduled, id) and redis.call("HGET", jobs, id)
        local priority, attempts, crashes, due, payload = read_record(record or "")
        if record and string.format("%.0f", due) == given then
            local changed = record_head(priority, attempts, crashes, math.min(now, due)) .. payload
            move(id, "scheduled", "ready", {record = changed, place = ready_place(id, priority, last - #entries + at)})
            moved = moved + 1
        end
    end
    if #entries > 0 then redis.call("ZREM", deferred, unpack(entries)) end
    return moved
end

local moved = 0
if recalls then
    moved, known = recall(), now
elseif not runs then
    sweep()
end
if redis.call("EXISTS", deferred) == 1 or now - known < FORGOTTEN then
    write_unknown(digest, known, shape)
else
    redis.call("HDEL", unknown, digest)
end
local first = redis.call("ZRANGE", deferred, 0, 0, "WITHSCORES")[2] or now
return {moved, redis.call("ZCARD", deferred), now - first, now - known}
