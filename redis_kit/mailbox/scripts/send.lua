#!lua
-- Store a message of a chat, and wake callers that wait. The number of members does not matter.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  sizes     zset: chat -> stored messages
-- KEYS[3]  messages  list: the messages of the chat, the last one at its end
-- KEYS[4]  members   zset: member -> number of the last message that they have read
-- KEYS[5]  idle      zset: the same, of members who do not hold messages
-- KEYS[6]  ids       zset: id of a call -> number of its message
-- KEYS[7]  wake              channel of callers that wait
-- ARGV[1]  chat
-- ARGV[2]  sender    a member, or "" for the project
-- ARGV[3]  content   kind, sender and body, as they are stored
-- ARGV[4]  id        of the call, or ""
-- ARGV[5]  limit     messages of a chat at most
-- ARGV[6]  age       of a message that a member may leave unread, ms
-- returns  the number of the message, that of the first call if the id is known; or a reason: none, stranger

local chats, sizes, messages, members, idle, ids, wake = unpack(KEYS)
local chat, sender, id = ARGV[1], ARGV[2], ARGV[4]
-- @check_types chats, sizes, messages, members, idle, ids
-- @include _trim
local last, keep = unpack(redis.call("HMGET", chats, chat, chat .. ":keep"))
local is_member = sender == "" or redis.call("ZSCORE", members, sender) or redis.call("ZSCORE", idle, sender)
if not (last and is_member) then
    return last and "stranger" or "none"
end
if redis.call("ZSCORE", ids, id) then
    return tonumber(redis.call("ZSCORE", ids, id))
end
local clock = redis.call("TIME")
local number = last + 1
local entry = clock[1] * 1000 + math.floor(clock[2] / 1000) .. " 0 " .. ARGV[3]
-- First, for it is refused to users without the right to this channel.
redis.call("SPUBLISH", wake, "message " .. number .. " " .. entry)
redis.call("HSET", chats, chat, number)
redis.call("RPUSH", messages, entry)
if id ~= "" then
    redis.call("ZADD", ids, number, id)
    redis.call("ZREMRANGEBYRANK", ids, 0, -1001)
    redis.call("PEXPIRE", ids, 3600000)
end
trim(number, keep, ARGV[5], ARGV[6])
return number
