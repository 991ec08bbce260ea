#!lua
-- Replace the body of a message of a chat.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  messages  list: the messages of the chat, the last one at its end
-- KEYS[3]  wake              channel of callers that wait
-- ARGV[1]  chat
-- ARGV[2]  number    of the message
-- ARGV[3]  sender    that the message must have; "" for any
-- ARGV[4]  kind      of the body; "x" for a message that is deleted
-- ARGV[5]  body
-- returns  1; or a reason: none, missing, other

local chats, messages, wake = unpack(KEYS)
local chat, number = ARGV[1], tonumber(ARGV[2])
-- @check_types chats, messages
local last = tonumber(redis.call("HGET", chats, chat) or "")
local place = number - 1 - (last or 0) + redis.call("LLEN", messages)
if not last or number > last or place < 0 then
    return last and "missing" or "none"
end
local entry = redis.call("LINDEX", messages, place)
local time, kind, sender = string.match(entry, "^(%d+) %d+ (%a) (%S*) ")
if ARGV[3] ~= "" and sender ~= ARGV[3] then
    return "other"
elseif kind == "x" and ARGV[4] ~= "x" then
    return "missing"
end
entry = table.concat({time, redis.call("TIME")[1] * 1000, ARGV[4], sender, ARGV[5]}, " ")
redis.call("SPUBLISH", wake, "change " .. ARGV[2] .. " " .. ARGV[4])
redis.call("LSET", messages, place, entry)
return 1
