#!lua flags=allow-oom
-- Delete jobs of one state that no worker has, from the first on.
--
-- KEYS[1]  jobs       hash: id -> record
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]  dead       zset: id -> when it died, ms
-- KEYS[5]  reasons    hash: id -> why it died
-- KEYS[6]  unique     hash: unique key -> id
-- KEYS[7]  owners     hash: id -> until when it has a unique key, and that key
-- ARGV[1]  state      ready, scheduled or dead
-- ARGV[2]  limit      how many, at most
-- returns  how many were deleted

local jobs, ready, scheduled, dead, reasons, unique, owners = unpack(KEYS)
local key = ({ready = ready, scheduled = scheduled, dead = dead})[ARGV[1]]

-- @include _free_unique_key
local any_unique = has_unique_keys()
local ids = redis.call("ZRANGE", key, 0, ARGV[2] - 1)
-- @check_types jobs, reasons

if #ids > 0 then
    redis.call("ZREM", key, unpack(ids))
    redis.call("HDEL", jobs, unpack(ids))
    redis.call("HDEL", reasons, unpack(ids))
    for _, id in ipairs(ids) do free_unique_key(id, any_unique) end
end
return #ids
