#!lua
-- Add new jobs, ready now or scheduled for later, unless an earlier call of this batch did so.
-- One script: a batch must not be noted without its jobs, nor a job stored without a place.
--
-- @keys sequence, signal, paused, scheduled, period
-- ARGV[1]     due       ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]     priority  -100 to 100
-- ARGV[3]     ttl       ms for which the batch is remembered
-- ARGV[4...]  added     id and payload of each job; the ids are new
-- returns     how many were added; 0 for a repeat

local priority, count = ARGV[2], (#ARGV - 3) / 2
-- @include _due_of
-- @include _record_head
-- @include _features
-- @include _move with put
-- @include _wake
local due, later = due_of(ARGV[1], redis.call("TIME"))
local signals = redis.call("LLEN", signal)
-- @check_types jobs, ready, scheduled, sequence
local wakes = signals == 0 and (not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
if not redis.call("SET", period, count, "NX", "PX", ARGV[3]) then
    return 0
end
local place = later and due or place_of(priority, redis.call("INCRBY", sequence, count) - count + 1)
local head, places, records = new_head(priority, due), {}, {}
for at = 1, count do
    local id = ARGV[2 + 2 * at]
    records[2 * at - 1], records[2 * at] = id, head .. ARGV[3 + 2 * at]
    places[2 * at - 1], places[2 * at] = later and place or place + at - 1, id
end
if later then use_feature(LATER) end
put(later and scheduled or ready, records, places)
if wakes then wake(signals) end
return count
