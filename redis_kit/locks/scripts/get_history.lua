#!lua flags=no-writes
-- Return the numbers of waits and lost leases in one bucket, by minute or by hour.
--
-- KEYS[1]  numbers  hash: minute or hour since 1970 -> five numbers, as _statistics.lua stores them
-- ARGV[1]  seconds  60 for minutes, 3600 for hours
-- ARGV[2]  count    how many minutes or hours, the present one among them
-- returns  the present minute or hour; then, alternating, each that has numbers, and these

local now = math.floor(redis.call("TIME")[1] / ARGV[1])
local first, reply = now - ARGV[2] + 1, { now }
if redis.call("EXISTS", KEYS[1]) == 0 then return reply end
for start = first, now, 1000 do
    local fields = {}
    for field = start, math.min(start + 999, now) do fields[#fields + 1] = field end
    for place, stored in ipairs(redis.call("HMGET", KEYS[1], unpack(fields))) do
        if stored then
            reply[#reply + 1] = fields[place]
            reply[#reply + 1] = stored
        end
    end
end
return reply
