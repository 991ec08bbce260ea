#!lua
-- Replace the body of a message of a chat.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  messages  list: the messages of the chat, the last one at its end
-- KEYS[3]  members   zset: member -> number of the last message that they have read
-- KEYS[4]  idle      zset: the same, of members who do not hold messages
-- KEYS[5]  wake              channel of callers that wait
-- ARGV[1]  chat
-- ARGV[2]  number    of the message
-- ARGV[3]  time      of that message, ms; "" if it is not known
-- ARGV[4]  sender    a member who must have sent it; "" for the project
-- ARGV[5]  kind      of the body; "x" for a message that is deleted
-- ARGV[6]  body
-- returns  nothing; or a reason: none, stranger, missing, other

local chats, messages, members, idle, wake = unpack(KEYS)
local chat, number, message_time, sender, body_kind, body = unpack(ARGV)
-- @check_types chats, messages, members, idle
local last = redis.call("HGET", chats, chat)
local is_member = sender == "" or redis.call("ZSCORE", members, sender) or redis.call("ZSCORE", idle, sender)
if not (last and is_member) then
    return last and "stranger" or "none"
end
local place = number - 1 - last + redis.call("LLEN", messages)
local entry = place >= 0 and redis.call("LINDEX", messages, place) or ""
local time, kind, author = string.match(entry, "^(%d+) %d+ (%a) (%S*) ")
if not time or (message_time ~= "" and message_time ~= time) or (kind == "x" and body_kind ~= "x") then
    return "missing"
elseif sender ~= "" and sender ~= author then
    return "other"
end
entry = table.concat({time, redis.call("TIME")[1] * 1000, body_kind, author, body}, " ")
redis.call("SPUBLISH", wake, "change " .. number .. " " .. body_kind)
redis.call("LSET", messages, place, entry)
