#!lua
-- Add the job of a schedule's tick, unless it was added before or an earlier job of the schedule is in the way. A job that
-- failed and waits for its retry begins that now, in place of a new job.
-- One script: of two workers that have the same tick, the second one must find the job of the first.
--
-- @keys sequence, signal, ticks, period
-- ARGV[1]   schedule
-- ARGV[2]   tick       ms, its name and not the time at which this runs; 0 for a run that somebody asked for
-- ARGV[3]   overlap    "skip", "queue_one" or "allow"
-- ARGV[4]   priority   -100 to 100
-- ARGV[5]   id
-- ARGV[6]   payload
-- ARGV[7]   key        unique key of the call; "" if its task is not unique
-- ARGV[8]   until      see put_unique
-- ARGV[9]   lane       of a job that has one, see on_put of limits; else ""
-- returns   "added"; "retried" when a retry was made ready in its place; "repeated" when one of the two was done before;
--           "skipped" when an earlier job waits, or runs and may have no other beside it; "waits" when the tick is to
--           wait for a running job; then the id of the job that there is

local schedule, tick, overlap, priority, id, payload, key, ending, lane = unpack(ARGV)
-- @include redis_kit.queues.engine:_record_head
-- @include redis_kit.queues.engine:_record
-- @include redis_kit.queues.engine:_features
-- @include redis_kit.queues.engine:_due_of
-- @include redis_kit.queues.engine:_state_of
-- @include redis_kit.queues.engine:_move with any
-- @include redis_kit.queues.engine:_wake
-- @check_types jobs, ready, sequence, signal, scheduled, dead, ticks
-- @hook on_check
local latest, job = string.match(redis.call("HGET", ticks, schedule) or "", "^(%d+) (%S+)$")
if tick ~= "0" and tonumber(latest or 0) >= tonumber(tick) then
    return {"repeated", job}
end
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function is_retry(record)
    local _, attempts, _, due = read_record(record)
    return attempts > 0 and due > now and redis.call("ZSCORE", scheduled, job)
end
local function note_tick(id)
    redis.call("HSET", ticks, schedule, (tick == "0" and latest or tick) .. " " .. id)
    redis.call("PEXPIRE", ticks, 400 * 86400000)
end
local record = job and overlap ~= "allow" and redis.call("HGET", jobs, job)
if record and is_retry(record) then
    note_tick(job)
    local priority, attempts, crashes, _, old = read_record(record)
    local place = ready_place(job, priority, redis.call("INCRBY", sequence, 1))
    move(job, "scheduled", "ready", {place = place, record = record_head(priority, attempts, crashes, now) .. old})
    wake()
    return {"retried", job}
end
local state = record and state_of(job)
if state and state ~= "dead" then
    return {(state ~= "running" or overlap == "skip") and "skipped" or "waits", job}
end
local holder
if key ~= "" then
    holder = redis.call("GET", period)
    -- @hook on_look_up(key, holder)
end
if holder then
    return {"skipped", holder}
elseif redis.call("HEXISTS", jobs, id) == 1 then
    note_tick(id)
    return {"repeated", id}
end

local due, later = due_of("0", clock)
local place = lane == "" and place_of(priority, redis.call("INCRBY", sequence, 1))
move(id, nil, lane == "" and "ready" or "parked", {record = new_head(priority, due) .. payload, place = place})
if lane ~= "" then
    local ids = {id}
    -- @hook on_put(lane, ids, priority, later)
end
if key ~= "" then
    -- @hook on_hold(key, ending, id, period)
end
note_tick(id)
wake()
return {"added", id}
