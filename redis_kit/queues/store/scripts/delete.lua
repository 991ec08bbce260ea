#!lua flags=allow-oom
-- Delete a job that no worker has.
--
-- KEYS[1]  jobs       hash: id -> record
-- KEYS[2]  ready      zset: id -> place
-- KEYS[3]  scheduled  zset: id -> when it is due, ms on the server's clock
-- KEYS[4]  dead       zset: id -> when it died, ms
-- KEYS[5]  reasons    hash: id -> why it died
-- KEYS[6]  unique     hash: unique key -> id
-- KEYS[7]  owners     hash: id -> until when it has a unique key, and that key
-- ARGV[1]  id
-- returns  1 when it was deleted; 0 when there is none, or it is running

local jobs, ready, scheduled, dead, reasons, unique, owners = unpack(KEYS)
local id = ARGV[1]

-- @include _free_unique_key
local any_unique = has_unique_keys()
-- @check_types ready, scheduled, dead, jobs, reasons

local removed = 0
for _, key in ipairs({ready, scheduled, dead}) do
    removed = removed + redis.call("ZREM", key, id)
end
if removed > 0 then
    redis.call("HDEL", jobs, id)
    redis.call("HDEL", reasons, id)
    free_unique_key(id, any_unique)
    return 1
end
return 0
