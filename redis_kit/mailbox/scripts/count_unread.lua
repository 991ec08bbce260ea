#!lua flags=no-writes
-- Count the unread messages in all chats of a member that are in one bucket.
--
-- KEYS[1]  chats  hash: chat -> number of its last message; chat:keep -> messages to keep
-- KEYS[2]  reads  hash of the member: chat -> number of the last message that they have read
-- returns  for each chat its name and the number of unread messages, with spaces between

local counts = redis.call("HGETALL", KEYS[2])
for place = 1, #counts, 2 do
    local read = tonumber(counts[place + 1])
    counts[place + 1] = math.max(0, (redis.call("HGET", KEYS[1], counts[place]) or read) - read)
end
return table.concat(counts, " ")
