#!lua flags=no-writes
-- Read messages of an inbox, whether they have a lease or not.
--
-- KEYS[1]  messages  hash: number -> message, and how many are missed
-- KEYS[2]  numbers   zset: the numbers of the messages
-- ARGV[1]  after     number before the first one
-- ARGV[2]  limit     messages at most
-- returns  how many are missed, the numbers, and the messages

local numbers = redis.call("ZRANGE", KEYS[2], "(" .. ARGV[1], "+inf", "BYSCORE", "LIMIT", 0, ARGV[2])
local messages = #numbers > 0 and redis.call("HMGET", KEYS[1], unpack(numbers)) or {}
return {tonumber(redis.call("HGET", KEYS[1], "missed") or "0"), numbers, messages}
