#!lua flags=allow-oom
-- Acknowledge messages of an inbox, or end their leases.
--
-- KEYS[1]     inboxes   zset: user -> number of the oldest message
-- KEYS[2]     messages  hash: number -> message, and how many are missed
-- KEYS[3]     numbers   zset: the numbers of the messages
-- KEYS[4]     leases    zset: number -> when its lease ends, ms
-- KEYS[5]     wake              channel of callers that wait
-- ARGV[1]     user
-- ARGV[2]     verb      ack or nack
-- ARGV[3...]  numbers   of messages
-- returns     how many of them were in the inbox, or had a lease

local inboxes, messages, numbers, leases, wake = unpack(KEYS)
-- @check_types inboxes, messages, numbers, leases
local settled = {unpack(ARGV, 3)}
redis.call("SPUBLISH", wake, ARGV[2] .. " " .. table.concat(settled, " "))
local count = redis.call("ZREM", leases, unpack(settled))
if ARGV[2] == "ack" then
    count = redis.call("ZREM", numbers, unpack(settled))
    -- Readers whose messages were all removed have not been told of it.
    redis.call("HDEL", messages, count > 0 and "missed" or settled[1], unpack(settled))
    local oldest = redis.call("ZRANGE", numbers, 0, 0)[1]
    redis.call(oldest and "ZADD" or "ZREM", inboxes, unpack(oldest and {oldest, ARGV[1]} or {ARGV[1]}))
end
return count
