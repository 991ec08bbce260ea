#!lua
-- Add jobs: ready now, or scheduled for later.
-- One script: a job must not be stored without a place, nor a place without its job.
--
-- KEYS[1]     jobs       hash: id -> record
-- KEYS[2]     ready      zset: id -> place
-- KEYS[3]     scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]     dead       zset: id -> when it died, ms
-- KEYS[5]     reasons    hash: id -> why it died
-- KEYS[6]     sequence   counter of jobs that got ready
-- KEYS[7]     signal     list: one element while a worker is to wake up
-- KEYS[8]     paused     string  the queue is paused while it exists: since when, ms
-- KEYS[9]     unique     hash: unique key -> id
-- KEYS[10]    owners     hash: id -> until when it has a unique key, and that key
-- KEYS[11...] cancels    hash: id -> 1 for running jobs to cancel; only for ids that may have been used before
-- ARGV[1]     delay      ms from now
-- ARGV[2]     due        ms on the server's clock; 0 to go by the delay
-- ARGV[3]     priority   -100 to 100
-- ARGV[4...]  jobs       id and payload of each
-- returns     how many were added; a job whose id is in use is left as it is
--
-- Times are rounded up, or a job could start a fraction of a millisecond early.

local jobs, ready, scheduled, dead, reasons, sequence, signal, paused, unique, owners = unpack(KEYS)
local delay, due, priority = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.ceil(clock[2] / 1000)
due = due > 0 and due or now + delay

-- @include _wake
-- @include _record_head
-- A dead job may be put again.
local function revived(id, record)
    if not redis.call("ZSCORE", dead, id) then
        return false
    end
    -- @check_types reasons
-- @include _free_unique_key
    free_unique_key(id, has_unique_keys())
    redis.call("ZREM", dead, id)
    redis.call("HDEL", reasons, id)
    redis.call("HSET", jobs, id, record)
    return true
end

local later = due > now
local first = later and redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
local woken = redis.call("LLEN", signal) > 0
local cancels = KEYS[11]
if cancels then
    -- @check_types cancels
end
-- @check_types ready, sequence

local head = record_head(priority, 0, 0, math.max(now, due))
local when, added, entries = later and string.format("%.0f", due), {}, {}
for at = 4, #ARGV, 2 do
    local id, record = ARGV[at], head .. ARGV[at + 1]
    if redis.call("HSETNX", jobs, id, record) == 1 or revived(id, record) then
        added[#added + 1] = id
    end
end
if #added == 0 then
    return 0
end
if cancels then redis.call("HDEL", cancels, unpack(added)) end  -- that was an earlier job of this id
local last = later and 0 or redis.call("INCRBY", sequence, #added)
for at, id in ipairs(added) do
    entries[2 * at - 1], entries[2 * at] = when or place_of(priority, last - #added + at), id
end
redis.call("ZADD", later and scheduled or ready, unpack(entries))
if not woken and (not later or not first or due < tonumber(first)) then
    wake()
end
return #added
