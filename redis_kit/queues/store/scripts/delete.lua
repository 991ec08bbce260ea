#!lua flags=allow-oom
-- Delete a job that no worker has.
--
-- KEYS[1]   jobs       hash: id -> record
-- KEYS[2]   ready      zset: id -> place
-- KEYS[3]   scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]   dead       zset: id -> when it died, ms
-- KEYS[5]   reasons    hash: id -> why it died
-- KEYS[6]   unique     hash: unique key -> id
-- KEYS[7]   owners     hash: id -> until when it has a unique key, and that key
-- KEYS[8]   signal     list: one element while a worker is to wake up
-- KEYS[9]   paused     string  the queue is paused while it exists: since when, ms
-- KEYS[10]  lanes      hash: id -> its rank in its lane, and that
-- KEYS[11]  limits     hash: limit -> what it allows, lane -> what it does
-- KEYS[12]  parked     zset of scores 0: what waits for a limit
-- ARGV[1]   id
-- returns   1 when it was deleted; 0 when there is none, or it is running

local jobs, ready, scheduled, dead, reasons, unique, owners, signal, paused, lanes, limits, parked = unpack(KEYS)
local id = ARGV[1]

-- @include _free_unique_key
-- @include _wake
-- @include _leave_lane
local any_unique = has_unique_keys()
-- @check_types ready, scheduled, dead, jobs, reasons, lanes, limits, parked, signal

local removed = waits_in_lane(id) and 1 or 0
for _, key in ipairs({ready, scheduled, dead}) do
    removed = removed + redis.call("ZREM", key, id)
end
if removed > 0 then
    redis.call("HDEL", jobs, id)
    redis.call("HDEL", reasons, id)
    if leave_lane(id) then wake() end
    free_unique_key(id, any_unique)
    return 1
end
return 0
