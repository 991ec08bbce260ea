#!lua
-- Add jobs: ready now, or scheduled for later.
-- One script: a job must not be stored without a place, nor a place without its job.
--
-- KEYS[1]      jobs       hash: id -> record
-- KEYS[2]      ready      zset: id -> place
-- KEYS[3]      sequence   counter of jobs that got ready
-- KEYS[4]      signal     list: one element while a worker is to wake up
-- KEYS[5]      paused     string  the queue is paused while it exists: since when, ms
-- KEYS[6...]   scheduled  zset: id -> when it is due, ms on the server's clock; only if ARGV[1] is not 0, or for a used id
-- KEYS[7...]   dead       zset: id -> when it died, ms; this and the others only for an id that may have been used before
-- KEYS[8...]   reasons    hash: id -> why it died
-- KEYS[9...]   unique     hash: unique key -> id
-- KEYS[10...]  owners     hash: id -> until when it has a unique key, and that key
-- KEYS[11...]  cancels    hash: id -> 1 for running jobs to cancel
-- ARGV[1]      due        ms on the server's clock, or a + and the ms from now; 0 for now
-- ARGV[2]      priority   -100 to 100
-- ARGV[3]      id
-- ARGV[4]      payload
-- ARGV[5...]   others     id and payload of each further job; then the ids are new
-- returns      how many were added; a job whose id is in use is left as it is
--
-- Times of scheduled jobs are rounded up, or a job could start a fraction of a millisecond early.

local jobs, ready, sequence, signal, paused, scheduled, dead, reasons, unique, owners, cancels = unpack(KEYS)
local priority, id = ARGV[2], ARGV[3]
local clock = redis.call("TIME")
local due, to = clock[1] .. string.sub("00000" .. clock[2], -6, -4), ready
if ARGV[1] ~= "0" then
    local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)
    local wanted = string.sub(ARGV[1], 1, 1) == "+" and now + ARGV[1] or tonumber(ARGV[1])
    if wanted > now then
        due, to = string.format("%.0f", wanted), scheduled
    end
end
local signals, died = redis.call("LLEN", signal), false
local wakes = signals == 0 and (to == ready or redis.call("ZCOUNT", scheduled, "-inf", due) == 0)
if dead then
    died = redis.call("ZSCORE", dead, id)
    if not died and redis.call("HEXISTS", jobs, id) == 1 then
        return 0
    end
    -- @check_types ready, scheduled, reasons, unique, owners, cancels
end

-- @include _record_head
local count, head, stored, placed = #ARGV / 2 - 1, new_head(priority, due), 0, 0
local place = to == ready and place_of(priority, redis.call("INCRBY", sequence, count) - count + 1) or due
if count == 1 then
    stored, placed = redis.pcall("HSET", jobs, id, head .. ARGV[4]), redis.pcall("ZADD", to, place, id)
else
    local places = {}
    for at = 3, #ARGV, 2 do
        places[at - 2], places[at - 1] = to == ready and place + (at - 3) / 2 or place, ARGV[at]
        ARGV[at + 1] = head .. ARGV[at + 1]
    end
    stored, placed = redis.pcall("HSET", jobs, unpack(ARGV, 3)), redis.pcall("ZADD", to, unpack(places))
end
if type(stored) == "table" or type(placed) == "table" then  -- refused, as a key is of a wrong type: undo the rest
    for at = 3, #ARGV, 2 do
        redis.pcall("HDEL", jobs, ARGV[at])
        redis.pcall("ZREM", to, ARGV[at])
    end
    if to == ready then redis.call("INCRBY", sequence, -count) end
    return type(stored) == "table" and stored or placed
end

if died then
-- @include _free_unique_key
    free_unique_key(id, has_unique_keys())
    redis.call("ZREM", dead, id)
    redis.call("HDEL", reasons, id)
end
if dead then redis.call("HDEL", cancels, id) end  -- that was an earlier job of this id
if wakes then
-- @include _wake
    wake(signals)
end
return count
