#!lua
-- Put a message into an inbox.
--
-- KEYS[1]  inboxes   zset: user -> number of the oldest message
-- KEYS[2]  messages  hash: number -> message, and how many are missed
-- KEYS[3]  numbers   zset: the numbers of the messages
-- KEYS[4]  leases    zset: number -> when its lease ends, ms
-- KEYS[5]  last      string: the last number of a day
-- KEYS[6]  ids       zset: id of a call -> number of its message
-- KEYS[7]  wake              channel of callers that wait
-- ARGV[1]  user
-- ARGV[2]  content   kind, "" and body, as they are stored
-- ARGV[3]  id        of the call, or ""
-- ARGV[4]  limit     messages of an inbox at most
-- returns  the number of the message: a time in microseconds. It is that of the first call if the id is known

local inboxes, messages, numbers, leases, last, ids, wake = unpack(KEYS)
local id = ARGV[3]
-- @check_types inboxes, messages, numbers, leases, last, ids
if redis.call("ZSCORE", ids, id) then
    return tonumber(redis.call("ZSCORE", ids, id))
end
local clock = redis.call("TIME")
-- Another server's clock may be late after a failover. Numbers only grow, so that readers can go on after the last one.
local number = math.max(clock[1] * 1000000 + clock[2], (redis.call("GET", last) or 0) + 1)
local text = string.format("%.0f", number)
local entry = math.floor(number / 1000) .. " 0 " .. ARGV[2]
redis.call("SPUBLISH", wake, "message " .. text .. " " .. entry)
redis.call("SET", last, text, "PX", 86400000)
redis.call("HSET", messages, text, entry)
redis.call("ZADD", numbers, text, text)
if id ~= "" then
    redis.call("ZADD", ids, text, id)
    redis.call("ZREMRANGEBYRANK", ids, 0, -1001)
    redis.call("PEXPIRE", ids, 3600000)
end
local surplus = redis.call("ZCARD", numbers) - ARGV[4]
if surplus > 0 then
    local dropped = redis.call("ZRANGE", numbers, 0, math.min(surplus, 100) - 1)
    redis.call("HDEL", messages, unpack(dropped))
    redis.call("ZREM", numbers, unpack(dropped))
    redis.call("ZREM", leases, unpack(dropped))
    redis.call("HINCRBY", messages, "missed", #dropped)
end
redis.call("ZADD", inboxes, redis.call("ZRANGE", numbers, 0, 0)[1], ARGV[1])
return number
