#!lua flags=allow-oom
-- Note that a member has read messages, and remove those that all have read.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  sizes     zset: chat -> stored messages
-- KEYS[3]  messages  list: the messages of the chat, the last one at its end
-- KEYS[4]  members   zset: member -> number of the last message that they have read
-- KEYS[5]  idle      zset: the same, of members who do not hold messages
-- KEYS[6]  reads     hash of the member: chat -> number of the last message that they have read
-- ARGV[1]  chat
-- ARGV[2]  member
-- ARGV[3]  number    of the last message that the member has read
-- ARGV[4]  time      of that message, ms; "" if it is not known
-- ARGV[5]  limit     messages of a chat at most
-- ARGV[6]  age       of a message that a member may leave unread, ms
-- returns  the number that counts now; or a reason: none, stranger, future

local chats, sizes, messages, members, idle, reads = unpack(KEYS)
local chat, member, number = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- @check_types chats, sizes, messages, members, idle, reads
-- @include _trim
local last, keep = unpack(redis.call("HMGET", chats, chat, chat .. ":keep"))
local read = redis.call("ZSCORE", members, member) or redis.call("ZSCORE", idle, member)
if not (last and read) then
    return last and "stranger" or "none"
end
local place = number - 1 - last + redis.call("LLEN", messages)
local entry = place >= 0 and ARGV[4] ~= "" and redis.call("LINDEX", messages, place)
if number > tonumber(last) or (entry and string.match(entry, "^%d+") ~= ARGV[4]) then
    return "future"
end
read = math.max(tonumber(read), number)
redis.call("ZREM", idle, member)
redis.call("ZADD", members, read, member)
redis.call("HSET", reads, chat, read)
trim(last, keep, ARGV[5], ARGV[6])
return read
