#!lua
-- Add jobs: ready now, or scheduled for later.
--
-- KEYS[1]     jobs       hash: id -> record
-- KEYS[2]     ready      zset: id -> place
-- KEYS[3]     scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]     dead       zset: id -> when it died, ms
-- KEYS[5]     reasons    hash: id -> why it died
-- KEYS[6]     sequence   counter of jobs that got ready
-- KEYS[7]     signal     list: one element while a worker should look
-- KEYS[8]     paused     the queue is paused while it exists: since when, ms
-- KEYS[9]     unique     hash: unique key -> id
-- KEYS[10]    owners     hash: id -> until when it has a unique key, and that key
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

-- @include _record
-- @include _wake
-- @include _free
local later, known, last = due > now, {}, 0
local first = later and redis.call("ZRANGE", scheduled, 0, 0, "WITHSCORES")[2]
for at = 4, #ARGV, 2 do
    if redis.call("HEXISTS", jobs, ARGV[at]) == 1 then
        known[ARGV[at]] = true
    end
end
if next(known) then
    redis.call("ZCARD", dead)
    redis.call("HLEN", reasons)
end
redis.call("LLEN", signal)
if not later then
    redis.call("ZCARD", ready)
    last = redis.call("INCRBY", sequence, (#ARGV - 3) / 2)
end

local added, head = 0, string.format("%.0f 0 0 %.0f\n", priority, math.max(now, due))
for at = 4, #ARGV, 2 do
    local id = ARGV[at]
    if not known[id] or redis.call("ZREM", dead, id) == 1 then
        if known[id] then
            redis.call("HDEL", reasons, id)
            free(id)
        end
        known[id] = true
        redis.call("HSET", jobs, id, head .. ARGV[at + 1])
        if later then
            redis.call("ZADD", scheduled, string.format("%.0f", due), id)
        else
            redis.call("ZADD", ready, place(priority, last - (#ARGV - at - 1) / 2), id)
        end
        added = added + 1
    end
end
if added > 0 and (not later or not first or due < tonumber(first)) then
    wake()
end
return added
