#!lua
-- Create a chat, or let members join.
--
-- KEYS[1]     chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]     sizes     zset: chat -> stored messages
-- KEYS[3]     messages  list: the messages of the chat, the last one at its end
-- KEYS[4]     members   zset: member -> number of the last message that they have read
-- KEYS[5]     idle      zset: the same, of members who do not hold messages
-- KEYS[6]     joined    hash: member -> number of the last message that they may not see
-- KEYS[7...]  reads     hash of each member: chat -> number of the last message that they have read
-- ARGV[1]     chat
-- ARGV[2]     keep      messages to keep for new members; "" if the chat must exist
-- ARGV[3]     history   "1" if the members see what is stored
-- ARGV[4...]  members   names, in the order of their keys
-- returns     1 if the chat was created, else 0, and the number of members who are new; or the reason "none"

local chats, sizes, messages, members, idle, joined = unpack(KEYS, 1, 6)
local chat, keep, history = ARGV[1], ARGV[2], ARGV[3] == "1"
-- @check_types chats, sizes, messages, members, idle, joined
local last = redis.call("HGET", chats, chat)
if not last and keep == "" then
    return "none"
end
for place = 7, #KEYS do
    redis.call("HLEN", KEYS[place])
end
if keep ~= "" then
    redis.call("HSET", chats, chat, last or 0, chat .. ":keep", keep)
    redis.call("ZADD", sizes, "NX", 0, chat)
end
local read, added = tonumber(last or "0") - (history and redis.call("LLEN", messages) or 0), 0
for place = 7, #KEYS do
    local member = ARGV[place - 3]
    if not redis.call("ZSCORE", members, member) and not redis.call("ZSCORE", idle, member) then
        redis.call("ZADD", members, read, member)
        redis.call("HSET", KEYS[place], chat, read)
        if read > 0 and not history then
            redis.call("HSET", joined, member, read)
        end
        added = added + 1
    end
end
return {last and 0 or 1, added}
