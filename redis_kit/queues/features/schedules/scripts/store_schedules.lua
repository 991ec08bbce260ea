#!lua
-- Store the schedules of the database, and have those planned again that have changed.
--
-- @keys due, names, stored, versions
-- ARGV[1]     read      when the rows were read, ms on this server's clock; 0 for one that was just saved
-- ARGV[2]     all       1 with the last of all rows
-- ARGV[3...]  rows      name of each, and what it says: "" if it was deleted
-- returns     how many have changed
--
-- A row that was stored after all rows were read is newer than these say.

local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- @check_types due, names, stored, versions
local read, count = ARGV[1] == "0" and now or tonumber(ARGV[1]), 0
for at = 3, #ARGV, 2 do
    local name, definition = ARGV[at], ARGV[at + 1]
    local before, old = string.match(redis.call("HGET", stored, name) or "", "^(%d+)\n(.*)$")
    if read >= tonumber(before or 0) then
        if definition == "" then
            redis.call("HDEL", stored, name)
        else
            redis.call("HSET", stored, name, string.format("%.0f\n", read) .. definition)
        end
        if definition ~= (old or "") then
            redis.call("ZADD", due, 0, name)
            redis.call("ZADD", names, 0, name)
            count = count + 1
        end
    end
end
if ARGV[2] == "1" then
    redis.call("HSET", versions, "stored", string.format("%.0f", now))
end
return count
