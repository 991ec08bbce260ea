#!lua flags=no-writes
-- Read how many calls a throttle allowed and refused in each of the last minutes, as they are stored.
--
-- KEYS[1]  counts  hash: "refused", a counter like ``latest``. "0" to "72", blocks of hours: 4 bytes of the hour since 1970,
--                  then 9 bytes for each of its minutes with calls: minute, allowed, refused. An hour has the field of its
--                  number modulo 73. For "d0" to "d90" see hours.lua
-- KEYS[2]  latest  counter: the last minute with allowed calls since 1970 times 2^26, plus the number of these calls,
--                  which its block gets when the next one begins
-- ARGV[1]  wanted  number of minutes, at most 4320
-- returns  {this minute since 1970, latest, refused, the blocks of the hours of these minutes}

local HOURS = 73
local last, fields = math.floor(redis.call("TIME")[1] / 60), {"refused"}
for hour = math.floor((last - ARGV[1] + 1) / 60), math.floor(last / 60) do
    fields[#fields + 1] = hour % HOURS
end
local blocks = redis.call("HMGET", KEYS[1], unpack(fields))
local refused = table.remove(blocks, 1)
return {last, tonumber(redis.call("GET", KEYS[2]) or 0) or 0, tonumber(refused or 0) or 0, blocks}
