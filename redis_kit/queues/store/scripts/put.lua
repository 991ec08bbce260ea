#!lua
-- Add jobs: ready now, or with `delayed` scheduled, with `lane` in a lane. With `used` there is one, whose id may have been used.
-- One script: a job must not be stored without a place, nor a place without its job.
--
-- @keys jobs, ready, sequence, signal, paused
-- ARGV[1]     due       ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]     priority  -100 to 100
-- ARGV[3]     lane      see _put_in_lane; "" without one
-- ARGV[4...]  added     id and payload of each job
-- returns     how many were added; a job whose id is in use is left as it is

local priority, lane, first = ARGV[2], ARGV[3], ARGV[4]
-- @include _due_of
-- @include _record_head
local due, later = due_of(ARGV[1], redis.call("TIME"))
local signals = redis.call("LLEN", signal)
local wakes = signals == 0
-- @if delayed
-- @keys scheduled
-- @include _features
wakes = wakes and (not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
-- @end delayed
-- @if not delayed
-- @if lane
-- @include _features
-- @end lane
-- @end delayed
-- @if lane|used
-- @include _lanes with rules
-- @end lane|used
-- @if used
-- @keys endings
-- @include _state_of
-- @include _move with put, any
local state = redis.call("HEXISTS", jobs, first) == 1 and state_of(first)
if state and state ~= "dead" then
    return 0
end
-- @check_types cancels, endings
if state then
    -- @check_types ready, scheduled, reasons, unique, owners, lanes, turns, limits, parked
end
-- @end used
-- @if not used
-- @include _move with put
-- @end used
-- @if lane
-- @include _put_in_lane
wakes = signals == 0  -- also for what the code allows now
-- @check_types jobs, ready, sequence, lanes, turns, limits, parked
-- @end lane
local count, head, to = (#ARGV - 3) / 2, new_head(priority, due), ready
local place = later and due or place_of(priority, redis.call("INCRBY", sequence, count) - count + 1)
local records, places = {}, {}
for at = 1, 2 * count, 2 do
    records[at], records[at + 1] = ARGV[3 + at], head .. ARGV[4 + at]
    places[at], places[at + 1] = later and due or place + (at - 1) / 2, ARGV[3 + at]
end
-- @if delayed
if later then
    if redis.call("ZCARD", scheduled) == 0 then use_feature(LATER) end
    to = scheduled
end
-- @end delayed
-- @if used
if state then move(first, "dead", "gone", {}) end
redis.call("HDEL", cancels, first)
redis.call("HDEL", endings, first)
-- @end used
-- @if lane
local ids = {}
for at = 1, count do ids[at] = ARGV[2 + 2 * at] end
put_in_lane(lane, ids, not later and priority)
if not later then
    redis.call("HSET", jobs, unpack(records))
    to = nil
end
-- @end lane
if to then put(to, records, places) end
if wakes then
-- @include _wake
    wake(signals)
end
return count
