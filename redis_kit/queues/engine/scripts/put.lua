#!lua
-- Add jobs: ready now, or with `delayed` scheduled, with `lane` in a lane. With `used` there is one, whose id may have been used.
-- With `once` an earlier call may have added them: it is remembered for a time.
-- One script: a job must not be stored without a place, nor a place without its job.
--
-- @keys jobs, ready, sequence, signal
-- ARGV[1]     due       ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]     priority  -100 to 100
-- ARGV[3]     lane      see on_put of limits; "" without one
-- ARGV[4]     memory    for how many ms the call is remembered with `once`; else ""
-- ARGV[5...]  added     id and payload of each job
-- returns     how many were added; a job whose id is in use is left as it is. For a repeated call the id of the first job, and
--             none is added

local priority, count = ARGV[2], (#ARGV - 4) / 2
-- @include _due_of
-- @include _record_head
-- @if delayed|lane
-- @include _features
-- @end delayed|lane
-- @if used
-- @include _state_of
-- @end used
-- @include _move with put
-- @include _wake
local due, later = due_of(ARGV[1], redis.call("TIME"))
local signals, to = redis.call("LLEN", signal), ready
local wakes = signals == 0
-- @if delayed
-- @keys scheduled
wakes = wakes and (not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
if later then to = scheduled end
-- @end delayed
-- @if once
-- @keys period
local before = redis.call("GET", period)
if before then
    return before
end
-- @end once
-- @if used
local id = ARGV[5]
local state = redis.call("HEXISTS", jobs, id) == 1 and state_of(id)
if state and state ~= "dead" then
    return 0
end
-- @hook on_check
if state then
    -- @check_types ready, scheduled, reasons
end
-- @end used
-- @if lane
-- @check_types jobs, ready, sequence
-- @hook on_check
wakes = signals == 0  -- also for what the code allows now
-- @end lane
-- @if once
-- @check_types jobs, ready, sequence
-- @if delayed
-- @check_types scheduled
-- @end delayed
redis.call("SET", period, ARGV[5], "PX", ARGV[4])
-- @end once
local head, ids, records, places = new_head(priority, due), {}, {}, {}
local place = 0
-- @if not lane
place = later or place_of(priority, redis.call("INCRBY", sequence, count) - count + 1)
-- @end lane
for at = 1, 2 * count, 2 do
    ids[#ids + 1] = ARGV[4 + at]
    records[at], records[at + 1] = ARGV[4 + at], head .. ARGV[5 + at]
    places[at], places[at + 1] = later and due or place + (at - 1) / 2, ARGV[4 + at]
end
-- @if delayed
if later and redis.call("ZCARD", scheduled) == 0 then use_feature(8) end
-- @end delayed
-- @if used
local may_start
if state then move(id, "dead", "gone", {}) end
-- @hook on_end(ids, may_start)
-- @hook on_new(id)
-- @end used
-- @if lane
local lane = ARGV[3]
-- @hook on_put(lane, ids, priority, later)
if not later then
    redis.call("HSET", jobs, unpack(records))
    to = nil
end
-- @end lane
if to then put(to, records, places) end
if wakes then wake(signals) end
return count
