#!lua
-- Store the schedules of the database, and have those planned again that have changed.
--
-- KEYS[1]     due       zset: schedule -> when to look at it, ms
-- KEYS[2]     names     zset of scores 0: schedule
-- KEYS[3]     stored    hash: schedule -> when its row was changed, ms, and what it says
-- KEYS[4]     versions  hash: version of the code -> since when and when last a worker had it, ms; "stored" -> when all rows were stored
-- ARGV[1]     all       1 with the last of all rows
-- ARGV[2...]  rows      name of each, when it was changed, and what it says: "" if it was deleted
-- returns     how many have changed

local due, names, stored, versions = unpack(KEYS)
local clock = redis.call("TIME")
-- @check_types due, names, stored, versions
local count = 0
for at = 2, #ARGV, 3 do
    local name, changed, definition = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    local before, old = string.match(redis.call("HGET", stored, name) or "", "^(%d+)\n(.*)$")
    if definition == "" then
        redis.call("HDEL", stored, name)
    elseif tonumber(changed) >= tonumber(before or 0) then
        redis.call("HSET", stored, name, changed .. "\n" .. definition)
    end
    if old and definition == "" or definition ~= "" and old ~= definition then
        redis.call("ZADD", due, 0, name)
        redis.call("ZADD", names, 0, name)
        count = count + 1
    end
end
if ARGV[1] == "1" then
    redis.call("HSET", versions, "stored", clock[1] .. "000")
end
return count
