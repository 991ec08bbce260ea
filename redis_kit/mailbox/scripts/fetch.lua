#!lua flags=no-writes
-- Read messages of a chat.
--
-- KEYS[1]  chats     hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  messages  list: the messages of the chat, the last one at its end
-- KEYS[3]  members   zset: member -> number of the last message that they have read
-- KEYS[4]  idle      zset: the same, of members who do not hold messages
-- KEYS[5]  joined    hash: member -> number of the last message that they may not see
-- ARGV[1]  chat
-- ARGV[2]  member    who reads; "" for the project, which may see all
-- ARGV[3]  limit     messages at most
-- ARGV[4]  after     number of the last message before them; "" for the last one that the member has read
-- ARGV[5]  time      of that message, ms; "" if it is not known
-- ARGV[6]  before    number of the message after them; "" for none. If given, the last ones before it are read
-- returns  numbers of the last message and of the last read, how many are missed, number of the first of the messages,
--          and these; or a reason: none, stranger

local chats, messages, members, idle, joined = unpack(KEYS)
local chat, member, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local after, before = tonumber(ARGV[4]), tonumber(ARGV[6])
local last = tonumber(redis.call("HGET", chats, chat) or "")
local floor = last and last - redis.call("LLEN", messages)
local read = member == "" and floor or redis.call("ZSCORE", members, member) or redis.call("ZSCORE", idle, member)
if not (last and read) then
    return last and "stranger" or "none"
end
local hidden = tonumber(redis.call("HGET", joined, member) or "0")
if before then
    local stop = math.min(before - 1, last)
    local start = math.max(stop - limit, floor, hidden) + 1
    local found = stop >= start and redis.call("LRANGE", messages, start - floor - 1, stop - floor - 1) or {}
    return {last, read, 0, start, found}
elseif after and after > floor then
    -- Unless it is that of this message, a server that lost its last seconds gave the number out.
    local time = string.match(redis.call("LINDEX", messages, after - floor - 1) or "", "^%d+")
    after = time and (ARGV[5] == "" or ARGV[5] == time) and after or nil
end
local position = math.max(after or read, hidden)
local start = math.max(position, floor)
return {last, read, start - position, start + 1, redis.call("LRANGE", messages, start - floor, start - floor + limit - 1)}
