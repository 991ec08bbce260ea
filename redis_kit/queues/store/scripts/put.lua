#!lua
-- Add jobs: ready now, or scheduled for later.
-- One script: a job must not be stored without a place, nor a place without its job.
--
-- KEYS[1]      jobs       hash: id -> record
-- KEYS[2]      ready      zset: id -> place
-- KEYS[3]      sequence   counter of jobs that got ready
-- KEYS[4]      signal     list: one element while a worker is to wake up
-- KEYS[5]      paused     string  the queue is paused while it exists: since when, ms
-- KEYS[6...]   scheduled  zset: id -> when it is due, ms on the server's clock; only if ARGV[1] is not 0, or with the next ones
-- KEYS[7...]   lanes      hash: id -> its rank in its lane, and that; this and the next two only for jobs with a lane, or a used id
-- KEYS[8...]   limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[9...]   parked     zset of scores 0: what waits for a limit
-- KEYS[10...]  dead       zset: id -> when it died, ms; this and the others only for an id that may have been used before
-- KEYS[11...]  reasons    hash: id -> why it died
-- KEYS[12...]  unique     hash: unique key -> id
-- KEYS[13...]  owners     hash: id -> until when it has a unique key, and that key
-- KEYS[14...]  cancels    hash: id -> 1 for running jobs to cancel
-- ARGV[1]      due        ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]      priority   -100 to 100
-- ARGV[3]      id
-- ARGV[4]      payload
-- ARGV[5...]   others     id and payload of each further job; then the ids are new; last the lane, if they have one
-- returns      how many were added; a job whose id is in use is left as it is

local jobs, ready, sequence, signal, paused, scheduled, lanes, limits, parked = unpack(KEYS)
local dead, reasons, unique, owners, cancels = unpack(KEYS, 10)
local lane = #ARGV % 2 == 1 and table.remove(ARGV)
local priority, id = ARGV[2], ARGV[3]
-- @include _due_of
-- @include _record_head
local due, later = due_of(ARGV[1], redis.call("TIME"))
local signals, died = redis.call("LLEN", signal), false
local wakes = signals == 0 and (lane or not later or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
if dead then
    local in_use = redis.call("HEXISTS", jobs, id) == 1
    died = redis.call("ZSCORE", dead, id)
    if in_use and not died then
        return 0
    end
    -- @check_types cancels
    if died then
        -- @check_types ready, scheduled, reasons, unique, owners, lanes
    end
end

if lane then
    -- @check_types jobs, lanes
    if later then
        -- @check_types scheduled
    end
end
local count, head, stored, placed = #ARGV / 2 - 1, new_head(priority, due), 0, 0
local to = later and scheduled or ready
local place = later and due or not lane and place_of(priority, redis.call("INCRBY", sequence, count) - count + 1)
if lane then
-- @include _put_in_lane
    local ids = {}
    for at = 3, #ARGV, 2 do
        ids[#ids + 1], ARGV[at + 1] = ARGV[at], head .. ARGV[at + 1]
    end
    put_in_lane(lane, ids, not later and priority)
    for _, id in ipairs(later and ids or {}) do redis.call("ZADD", scheduled, due, id) end
    redis.call("HSET", jobs, unpack(ARGV, 3))
elseif count == 1 then
    stored, placed = redis.pcall("HSET", jobs, id, head .. ARGV[4]), redis.pcall("ZADD", to, place, id)
else
    local places = {}
    for at = 3, #ARGV, 2 do
        places[at - 2], places[at - 1] = later and place or place + (at - 3) / 2, ARGV[at]
        ARGV[at + 1] = head .. ARGV[at + 1]
    end
    stored, placed = redis.pcall("HSET", jobs, unpack(ARGV, 3)), redis.pcall("ZADD", to, unpack(places))
end
if type(stored) == "table" or type(placed) == "table" then
-- @include _undo_put
    local ids = {}
    for at = 3, #ARGV, 2 do
        ids[#ids + 1] = ARGV[at]
    end
    return undo_put(to, ids, stored, placed)
end

if dead then
-- @include _free_unique_key
-- @include _forget_earlier
    forget_earlier(id, died)
end
if wakes then
-- @include _wake
    wake(signals)
end
return count
