#!lua flags=allow-oom
-- Remove members from a chat, and the chat itself if that is wanted and nobody is left.
--
-- KEYS[1]     chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]     sizes     zset: chat -> stored messages
-- KEYS[3]     messages  list: the messages of the chat, the last one at its end
-- KEYS[4]     members   zset: member -> number of the last message that they have read
-- KEYS[5]     idle      zset: the same, of members who do not hold messages
-- KEYS[6]     joined    hash: member -> number of the last message that they may not see
-- KEYS[7]     ids       zset: id of a call -> number of its message
-- KEYS[8]     wake              channel of callers that wait
-- KEYS[9...]  reads     hash of each member: chat -> number of the last message that they have read
-- ARGV[1]     chat
-- ARGV[2]     limit     messages of a chat at most
-- ARGV[3]     age       of a message that a member may leave unread, ms
-- ARGV[4]     clear     "1" to remove the chat when nobody is left
-- ARGV[5...]  members   names, in the order of their keys
-- returns     how many were members, and 1 if the chat is gone; or the reason "none"

local chats, sizes, messages, members, idle, joined, ids, wake = unpack(KEYS, 1, 8)
local chat = ARGV[1]
-- @check_types chats, sizes, messages, members, idle, joined, ids
-- @include _trim
local last, keep = unpack(redis.call("HMGET", chats, chat, chat .. ":keep"))
if not last then
    return "none"
end
redis.call("SPUBLISH", wake, "left " .. table.concat(ARGV, " ", 5))
local removed = 0
for place = 9, #KEYS do
    local member = ARGV[place - 4]
    removed = removed + redis.call("ZREM", members, member) + redis.call("ZREM", idle, member)
    redis.call("HDEL", joined, member)
    redis.call("HDEL", KEYS[place], chat)
end
if ARGV[4] == "1" and redis.call("ZCARD", members) + redis.call("ZCARD", idle) == 0 then
    redis.call("HDEL", chats, chat, chat .. ":keep")
    redis.call("ZREM", sizes, chat)
    redis.call("UNLINK", messages, members, idle, joined, ids)
    return {removed, 1}
end
trim(last, keep, ARGV[2], ARGV[3])
return {removed, 0}
