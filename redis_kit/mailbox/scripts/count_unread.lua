#!lua flags=no-writes
-- Count the unread messages in all chats of a member that are in one bucket.
--
-- KEYS[1]  chats  hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  reads  hash of the member: chat -> number of the last message that they have read
-- returns  for each chat its name and the number of unread messages, with spaces between

local names, reads = redis.call("HKEYS", KEYS[2]), redis.call("HVALS", KEYS[2])
local lasts = #names > 0 and redis.call("HMGET", KEYS[1], unpack(names)) or {}
for place, last in ipairs(lasts) do
    names[place] = names[place] .. " " .. math.max(0, (last or reads[place]) - reads[place])
end
return table.concat(names, " ")
