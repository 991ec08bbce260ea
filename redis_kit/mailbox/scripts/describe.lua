#!lua flags=no-writes
-- Read the state of a chat.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  messages  list: the messages of the chat, the last one at its end
-- KEYS[3]  members   zset: member -> number of the last message that they have read
-- KEYS[4]  idle      zset: the same, of members who do not hold messages
-- ARGV[1]  chat
-- returns  stored messages, members, idle ones, those behind, and the time of the oldest message, ms

local last = redis.call("HGET", KEYS[1], ARGV[1]) or 0
local members, idle = redis.call("ZCARD", KEYS[3]), redis.call("ZCARD", KEYS[4])
local behind = redis.call("ZCOUNT", KEYS[3], "-inf", "(" .. last) + redis.call("ZCOUNT", KEYS[4], "-inf", "(" .. last)
local oldest = string.match(redis.call("LINDEX", KEYS[2], 0) or "0", "^%d+")
return {redis.call("LLEN", KEYS[2]), members + idle, idle, behind, tonumber(oldest)}
