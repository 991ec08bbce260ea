#!lua flags=no-writes
-- Read the state of a chat.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  messages  list: the messages of the chat, the last one at its end
-- KEYS[3]  members   zset: member -> number of the last message that they have read
-- KEYS[4]  idle      zset: the same, of members who do not hold messages
-- ARGV[1]  chat
-- returns  number of the last message, messages to keep, stored messages, members, idle members, members who have not
--          read all, and the time of the oldest message, ms; nothing if there is no chat

local last, keep = unpack(redis.call("HMGET", KEYS[1], ARGV[1], ARGV[1] .. ":keep"))
if not last then
    return nil
end
local members, idle = redis.call("ZCARD", KEYS[3]), redis.call("ZCARD", KEYS[4])
local behind = redis.call("ZCOUNT", KEYS[3], "-inf", "(" .. last) + redis.call("ZCOUNT", KEYS[4], "-inf", "(" .. last)
local oldest = string.match(redis.call("LINDEX", KEYS[2], 0) or "0", "^%d+")
return {tonumber(last), tonumber(keep), redis.call("LLEN", KEYS[2]), members + idle, idle, behind, tonumber(oldest)}
